"""`tsuzuki …` as processes: started in a folder, and what they say when they end."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Serving = Callable[..., tuple["subprocess.Popen[str]", str]]
PATIENCE = 90


def command(*arguments: str, folder: Path, out: Any = subprocess.PIPE, **environment: str) -> "subprocess.Popen[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
    return subprocess.Popen(
        [sys.executable, "-m", "tsuzuki.cli", *arguments],
        cwd=folder,
        env=clean | environment,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
    )


def told(*arguments: str, folder: Path, code: int = 0, **environment: str) -> tuple[str, str]:
    process = command(*arguments, folder=folder, **environment)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code, err
    return out, err
