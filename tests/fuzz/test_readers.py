"""A short form of `make fuzz`: honest input, changed a little at a time, and texts that go on for ever."""

import random
import time
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.asking import asked
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, texts
from tsuzuki.apps.notes.refusals import BadExport
from tsuzuki.apps.notes.sources.archive import opened
from tsuzuki.wheelerrors import BadWheel
from tsuzuki.wheels.examining import members

SOON = 2.0
"""What takes longer (seconds of this process) hangs."""
LONG = 60_000
"""Where each character costs as much as all before it, so many of them take longer than that."""
PIECES = (
    *(
        "a",
        "0",
        ".",
        "/",
        " ",
        "\t",
        "\n",
        "#",
        "*",
        "`",
        "[",
        "(",
        "<",
        "!",
        "「",
        "漢",
        "ア",
        "を",
        ":",
        "|",
        "@",
        "-",
    ),
    *(
        "_",
        "<!--",
        "```a\n",
        "~~~\n",
        "a.",
        "a/",
        "a@",
        "[a](",
        "](",
        "# ",
        "**",
        "- ",
        "aA-",
        "http://",
        "a: ",
        "。",
        "み込",
    ),
)
CHANGES = st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 3), st.binary(max_size=6)), min_size=1, max_size=6)
SHORT = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module", autouse=True)
def _gateway() -> Iterator[None]:
    yield
    if asked.cache_info().currsize:
        asked().close()
        asked.cache_clear()


def changed(seed: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    """Puts bytes in, in place of others, out, or twice."""
    made = bytearray(seed)
    for place, kind, piece in changes:
        at = place % (len(made) + 1)
        end = at + (0, len(piece), 7, 0)[kind]
        made[at:end] = piece if kind != 3 else made[at : at + 40] * 2
    return bytes(made)


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_is_read_or_refused_in_words(name: str) -> None:
    target, found = TARGETS[name], seeds()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile and re warn of what is odd; what becomes of it is looked at here
        for seed in found:
            target(seed)

        @SHORT
        @given(st.sampled_from(found), CHANGES)
        def holds(seed: bytes, changes: list[tuple[int, int, bytes]]) -> None:
            began = time.process_time()
            target(changed(seed, changes))
            assert time.process_time() - began < SOON

        holds()


@pytest.mark.parametrize("name", texts())
def test_a_text_that_goes_on_for_ever_is_soon_read(name: str) -> None:
    read, allowed = texts()[name], SOON * len(PIECES) / 4
    began = time.process_time()
    for piece in PIECES:
        read(piece * (LONG // len(piece)))
        assert time.process_time() - began < allowed, f"{piece!r}"


def test_files_of_an_archive_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """Each of a thousand is honest, and all are the same bytes: the archive has them once, and unpacks them a thousand
    times."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + random.Random(1).randbytes(40_000).hex().encode() + b"]")
        first = archive.infolist()[0]
        for number in range(1000):
            twin = zipfile.ZipInfo(f"conversations-{number}.json")
            for name in ("compress_type", "CRC", "compress_size", "file_size", "header_offset", "external_attr"):
                setattr(twin, name, getattr(first, name))
            archive.filelist.append(twin)
    with zipfile.ZipFile(path) as archive, pytest.raises(BadWheel, match="share the same bytes"):
        members(archive)
    with pytest.raises(BadExport, match="share the same bytes"), opened(path):
        pass
