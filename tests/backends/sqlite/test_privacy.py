"""What runs were given and returned is for the eyes of whoever owns the store."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsuzuki import Runs, flow
from tsuzuki.testing import run_flow


@pytest.fixture
def open_handed() -> Iterator[None]:
    """A user whose files everybody may read and write, as far as he says nothing else."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir()}


@pytest.mark.usefixtures("open_handed")
async def test_a_store_is_read_by_its_owner_alone(tmp_path: Path) -> None:
    @flow
    async def large() -> str:
        return "x" * 3_000_000

    folder = tmp_path / "kept"
    async with Runs.open(f"sqlite:{folder / 'tsuzuki.db'}") as runs:
        await run_flow(large, backend=runs.backend)
        found = modes(folder)
    assert oct(stat.S_IMODE(folder.stat().st_mode)) == "0o700"
    assert {name: mode for name, mode in found.items() if name.startswith("tsuzuki.db") and mode[-2:] != "00"} == {}
