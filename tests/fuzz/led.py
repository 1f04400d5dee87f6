"""The process that fuzzes one target with atheris: `python -m tests.fuzz.led TARGET FOLDER OPTIONS…` of libFuzzer."""

import contextlib
import hashlib
import io
import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped] # it has an environment of its own: `make fuzz` makes it

with (
    contextlib.redirect_stderr(io.StringIO()),  # it tells of every module
    atheris.instrument_imports(include=["tsuzuki", "yaml", "zipfile", "packaging", "email"]),
):
    from tests.fuzz.seeds import seeds
    from tests.fuzz.targets import TARGETS, Target


def keeping(target: Target, folder: Path) -> Target:
    """Keeps what a target fails of, for whoever wants to see that again."""

    def kept(data: bytes) -> None:
        try:
            target(data)
        except BaseException:
            (folder / f"found-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)
            raise

    return kept


if __name__ == "__main__":
    target = keeping(TARGETS[sys.argv[1]], Path(sys.argv[2]))
    target(seeds()[sys.argv[1]][0])  # what is made at the first call, a gateway for example, counts as no hang
    atheris.Setup([sys.argv[0], *sys.argv[3:]], target)
    atheris.Fuzz()
