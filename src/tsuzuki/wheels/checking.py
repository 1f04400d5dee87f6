"""Compile and import the code of wheels in a process of its own: nothing that it does there harms the caller."""

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from packaging.tags import sys_tags

from tsuzuki.flowset import ENTRY_POINTS
from tsuzuki.wheelerrors import BadWheel
from tsuzuki.wheels.examining import Found
from tsuzuki.wheels.naming import WheelName, accepts_python

COMPILE_TIMEOUT_S: Final = 60.0
_COMPILE: Final = """
import sys, zipfile

with zipfile.ZipFile(sys.stdin.buffer) as archive:
    names = archive.namelist()
    entries = next((name for name in names if name.endswith(".dist-info/entry_points.txt")), None)
    offers_flows = entries is not None and f"[{sys.argv[1]}]" in archive.read(entries).decode("utf-8", "replace")
    for name in names if offers_flows else ():
        if name.endswith(".py"):
            try:
                compile(archive.read(name), name, "exec", dont_inherit=True)
            except SyntaxError as error:
                sys.exit(f"{name}, line {error.lineno}: {error.msg}")
            except (ValueError, MemoryError, RecursionError) as error:
                sys.exit(f"{name}: {error}")
"""
_IMPORT: Final = """
import json, os, sys
from importlib import metadata

report, group, folders, sys.path[:] = json.load(sys.stdin)
with open(report, "w", encoding="utf-8", buffering=1) as file:
    for folder in folders:
        print(json.dumps([folder, "importing its flows ends the process"]), file=file)
        reason = ""
        try:
            for distribution in metadata.distributions(path=[folder]):
                for entry in distribution.entry_points.select(group=group):
                    entry.load()
        except BaseException as error:
            reason = f"its flows cannot be imported: {type(error).__name__}: {error}"
        print(json.dumps([folder, reason]), file=file)
os._exit(0)
"""


async def compile_sources(file: IO[bytes], name: WheelName, found: Found) -> None:
    """Raise `BadWheel` with file and line if a wheel that offers flows has a source with a syntax error.

    A wheel for another Python is left alone. So is one without flows: libraries ship files that are no modules.
    """
    python = ".".join(map(str, sys.version_info[:3]))
    if name.fits.isdisjoint(sys_tags()) or not accepts_python(found.requires_python, python):
        return
    await asyncio.to_thread(file.seek, 0)
    try:
        async with asyncio.timeout(COMPILE_TIMEOUT_S):
            code, output = await run_python("-I", "-W", "ignore", "-c", _COMPILE, ENTRY_POINTS, stdin=file)
    except TimeoutError:
        raise BadWheel(f"invalid wheel file: its sources do not compile within {COMPILE_TIMEOUT_S:g} s") from None
    if code:
        raise BadWheel(f"invalid wheel file: {_last_line(output)} (Python {python})")


async def find_unimportable(paths: Sequence[str], folders: Sequence[str]) -> Mapping[str, str]:
    """Return the folders of wheels whose flows cannot be imported, each with the reason."""
    with tempfile.TemporaryDirectory() as folder:
        report, request = Path(folder) / "report", Path(folder) / "request"
        request.write_text(json.dumps([str(report), ENTRY_POINTS, list(folders), list(paths)]), encoding="utf-8")
        with request.open("rb") as stdin:
            await run_python("-c", _IMPORT, stdin=stdin)
        lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    reasons: dict[str, str] = dict(json.loads(line) for line in lines)
    return {place: reason for place, reason in reasons.items() if reason}


async def run_python(*arguments: str, stdin: IO[bytes] | int = asyncio.subprocess.DEVNULL) -> tuple[int, bytes]:
    """Run this Python with the arguments; return the exit code and standard error. Cancelled, it kills the process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=stdin, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        _, output = await process.communicate()
    finally:
        if process.returncode is None:  # the time is over, or the worker leaves
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode or 0, output


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "its sources cannot be compiled"
