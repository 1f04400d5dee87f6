"""The chaos of everything: `python -m tests.chaos [--store sqlite|nats|cluster|all] [--seconds S] [--seed N]`.

It starts the whole product, lets everybody use it, does harm for so many seconds, lets it settle, and then proves from
the stores that nothing was lost, repeated or paid for twice. The seed repeats the faults; `--folder` keeps what was
found.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.chaos.performance import perform
from tests.chaos.surroundings import INSIDE, enter

STORES = ("sqlite", "nats", "cluster")


def options(arguments: list[str]) -> argparse.Namespace:
    read = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    read.add_argument("--store", choices=[*STORES, "all"], default="all")
    read.add_argument("--seconds", type=float, default=60.0)
    read.add_argument("--seed", type=int)
    read.add_argument("--pace", type=float, default=3.0, help="runs a second")
    read.add_argument("--folder", type=Path, help="where everything is kept; removed if it is not named")
    read.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    return read.parse_args(arguments)


def main() -> int:
    given = options(sys.argv[1:])
    if given.seed is None:
        given.seed = random.randrange(1_000_000)
    if given.store == "all":
        words = ["--seconds", str(given.seconds), "--seed", str(given.seed), "--pace", str(given.pace)]
        command = [sys.executable, "-m", "tests.chaos", *words]
        return max(subprocess.run([*command, "--store", store], check=False).returncode for store in STORES)
    if not given.inside:
        enter([*sys.argv[1:], *([] if "--seed" in sys.argv else ["--seed", str(given.seed)])])
    folder = given.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    report = perform(given.store, given.seed, given.seconds, folder, pace=given.pace)
    sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    failed = any(report["offences"].values())
    if failed:
        sys.stdout.write(f"it does not hold; what was found is in {folder}\n")
    elif given.folder is None:
        shutil.rmtree(folder)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
