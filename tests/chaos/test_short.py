"""The chaos of everything in its short form: some seconds of it on each of two stores, as a program of its own."""

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests.chaos.faults import sequence
from tests.chaos.parts import ROOT

KINDS = {"kill": (1.0, ["w0", "gateway"]), "clock": (1.0, ["a"])}


def test_a_seed_repeats_the_faults() -> None:
    first, again, other = (list(islice(sequence(seed, KINDS), 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.timeout(400)
@pytest.mark.parametrize("store", ["sqlite", "nats"])
def test_nothing_is_lost_repeated_or_paid_for_twice_on(store: str, tmp_path: Path) -> None:
    options = ["--store", store, "--seconds", "4", "--seed", "3", "--pace", "2", "--folder", str(tmp_path / "chaos")]
    command = [sys.executable, "-m", "tests.chaos", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["faults"]
    assert report["runs"]["COMPLETED"] > 5
    assert report["figures"]["items recorded"] > 20
