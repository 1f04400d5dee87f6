"""The process that fuzzes one target with atheris: `python -m tests.fuzz.led TARGET OPTIONS…` of libFuzzer."""

import contextlib
import io
import sys

import atheris  # type: ignore[import-untyped] # it has an environment of its own: `make fuzz` makes it

with (
    contextlib.redirect_stderr(io.StringIO()),  # it tells of every module
    atheris.instrument_imports(include=["tsuzuki", "yaml", "zipfile", "packaging", "email"]),
):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]])
    atheris.Fuzz()
