"""Names of files that are no UTF-8, in folders and in ZIP files: read as Windows in Japan writes them, or replaced."""

import json
import os
import zipfile
from pathlib import Path

import pytest

from tests.apps.notes.exports import claude
from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.extracting import extract
from tsuzuki.apps.notes.outputs import ITEMS
from tsuzuki.apps.notes.refusals import NoInput
from tsuzuki.apps.notes.sessions import Session, Sessions
from tsuzuki.apps.notes.sources.spelling import spelled_in_zip
from tsuzuki.apps.notes.wanted import Asked, previewed

WINDOWS = os.fsdecode("会議メモ".encode("cp932"))
NEITHER = os.fsdecode(b"caf\xe9")


class OfWindows(zipfile.ZipInfo):
    """A file in a ZIP as Windows in Japan names it, without saying so."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802 - zipfile calls it so
        return self.filename.encode("cp932"), self.flag_bits & ~0x800


def kept(tmp_path: Path, export: Path) -> Session:
    provider = sources.recognized(export)
    return Sessions(data_dir=tmp_path / "data").create(export, provider, tmp_path / "vault", {"chunk_size": 25_000})


def extracted(tmp_path: Path, export: Path) -> dict[str, str]:
    session = kept(tmp_path, export)
    extract(session)
    lines = (session.extracted / ITEMS).read_text(encoding="utf-8").splitlines()
    return {item["item_id"]: item["metadata"]["title"] for item in map(json.loads, lines)}


def test_texts_whose_names_are_no_utf8_are_imported_under_names_that_people_can_read(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    for name in (f"{WINDOWS}/{WINDOWS}.md", f"{NEITHER}.txt", "good.md", "日記.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("Otters swim.")
    assert previewed(Asked(folder, None)).items == 4
    found = extracted(tmp_path, folder)
    assert found == {
        "会議メモ/会議メモ.md": "会議メモ", "caf\ufffd.txt": "caf\ufffd", "good.md": "good", "日記.md": "日記",
    }  # fmt: skip
    assert extracted(tmp_path, folder) == found, "an id is the same each time"


def test_two_names_that_read_the_same_are_two_texts(tmp_path: Path) -> None:
    for name in ("会議メモ.md", f"{WINDOWS}.md"):
        (tmp_path / "texts" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "texts" / name).write_text(repr(name))
    found = list(sources.conversations(tmp_path / "texts", "markdown"))
    assert [each.id for each in found][1:] == ["会議メモ.md"]
    assert found[0].id.startswith("会議メモ-")
    assert len(extracted(tmp_path, tmp_path / "texts")) == 2


@pytest.mark.parametrize("place", [f"{WINDOWS}.json", f"{WINDOWS}/conversations.json", f"x/{NEITHER}.jsonl"])
def test_an_export_may_have_a_name_that_is_no_utf8_and_lie_in_such_a_folder(tmp_path: Path, place: str) -> None:
    path = tmp_path / "export" / place
    path.parent.mkdir(parents=True)
    path.write_text('{"id": "claude-0001", "title": "Otters 1", "text": "x"}' if "jsonl" in place else
                    json.dumps([claude(1)]))  # fmt: skip
    for export in {path, path.parent, tmp_path / "export"}:
        if export.is_file() or "conversations" in place or export.name == "x":
            assert extracted(tmp_path, export) == {"claude-0001": "Otters 1"}


def test_what_is_refused_is_named_in_signs_that_can_be_shown(tmp_path: Path) -> None:
    (tmp_path / WINDOWS).mkdir()
    with pytest.raises(NoInput, match="会議メモ は空です"):
        sources.recognized(tmp_path / WINDOWS)
    with pytest.raises(NoInput, match=r"会議メモ\.zip is not there"):
        sources.recognized(tmp_path / f"{WINDOWS}.zip")


def test_names_in_a_zip_are_read_as_they_were_written(tmp_path: Path) -> None:
    raw = "メモ2".encode().decode("cp437")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name in ("会議メモ.txt", "日記/表示.txt", "a.txt"):  # the second byte of some is a backslash
            archive.writestr(OfWindows(name), "Otters swim.")
        archive.writestr("良い.txt", "Otters swim.")
    raw_zip = (tmp_path / "x.zip").read_bytes().replace(b"a.txt", b"\xfd.txt")
    (tmp_path / "x.zip").write_bytes(raw_zip)
    found = {each.id: each.title for each in sources.conversations(tmp_path / "x.zip", "markdown")}
    assert found == {"会議メモ.txt": "会議メモ", "日記/表示.txt": "表示", "良い.txt": "良い", "².txt": "²"}
    assert spelled_in_zip(raw) == "メモ2", "as macOS writes them, without saying so"


def test_an_export_that_is_linked_is_read_and_no_other_file_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "export.json").write_text(json.dumps([claude(1)]))
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "here/linked.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(NoInput, match="links that lead out"):
        sources.recognized(tmp_path / "here")
    link = tmp_path / "here/conversations.json"
    link.symlink_to(tmp_path / "export.json")
    assert extracted(tmp_path, tmp_path / "here") == {"claude-0001": "Otters 1"}
    for elsewhere in ("/dev/zero", tmp_path, tmp_path / "missing"):
        link.unlink()
        link.symlink_to(elsewhere)
        with pytest.raises(NoInput):
            sources.recognized(tmp_path / "here")
