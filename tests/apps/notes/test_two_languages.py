"""What is refused is told in Japanese and in English, with the same facts in both: pages show one half."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apps.notes.exports import claude, written, zipped
from tsuzuki.apps.notes import sources
from tsuzuki.apps.notes.patience import IN_A_ROW, Patience
from tsuzuki.apps.notes.refusals import BadExport, ModelAway, NoInput, TooManyFailed, both, halves
from tsuzuki.results import Failure


def cut_off(folder: Path) -> Path:
    path = written(folder / "conversations.json", [claude(1), claude(2)])
    path.write_text(path.read_text()[:-30])
    return path


def encrypted(folder: Path) -> Path:
    path = zipped(folder / "x.zip", {"conversations.json": "[]"})
    raw = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(mark) + flags] |= 1
    path.write_bytes(raw)
    return path


def half_a_zip(folder: Path) -> Path:
    path = zipped(folder / "x.zip", {"conversations.json": "[]"})
    path.write_bytes(path.read_bytes()[:-20])
    return path


def not_utf8(folder: Path) -> Path:
    path = folder / "conversations.json"
    path.write_bytes(b'["\xff"]')
    return path


CASES: list[tuple[Callable[[Path], Path], list[str]]] = [
    (lambda folder: zipped(folder / "x.zip", {"../evil.json": "[]"}), ["x.zip", "../evil.json", "外のフォルダー"]),
    (lambda folder: zipped(folder / "x.zip", {"a\x07b": "[]"}), ["x.zip", r"a\x07b", "不正な名前"]),
    (encrypted, ["x.zip", "conversations.json", "暗号化"]),
    (half_a_zip, ["x.zip", "壊れた ZIP"]),
    (cut_off, ["conversations.json", "文字目", "途中で終わっています"]),
    (not_utf8, ["conversations.json", "2 文字目", "UTF-8"]),
    (lambda folder: written(folder / "conversations.json", [{"otters": 1}]), ["mapping", "chat_messages", "otters"]),
    (lambda folder: zipped(folder / "x.zip", {"inner.zip": ""}), ["x.zip", "conversations.json", "inner.zip"]),
]


@pytest.mark.parametrize(("make", "facts"), CASES)
def test_the_japanese_half_of_a_refused_export_has_the_facts(
    make: Callable[[Path], Path], facts: list[str], tmp_path: Path
) -> None:
    path = make(tmp_path)
    with pytest.raises(BadExport) as caught:
        list(sources.conversations(path, sources.recognized(path)))
    japanese, english = halves(str(caught.value))
    assert [fact for fact in facts if fact not in japanese] == []
    assert english.isascii()


def test_no_input_begins_as_scripts_expect_and_says_why_in_both(tmp_path: Path) -> None:
    with pytest.raises(NoInput) as caught:
        sources.recognized(tmp_path / "gone.zip")
    assert str(caught.value).startswith("[Error] No input files: ")
    japanese, english = halves(str(caught.value))
    assert japanese.endswith("gone.zip がありません")
    assert english.endswith("gone.zip is not there")
    zipfile.ZipFile(tmp_path / "empty.zip", "w").close()
    with pytest.raises(NoInput, match=r"empty\.zip は空です（.*） / empty\.zip is empty \(hidden"):
        sources.recognized(tmp_path / "empty.zip")


def test_who_gives_up_says_in_both_how_many_and_of_what() -> None:
    error = both("モデルの利用を拒否されました（HTTP 401: key / account）", "the provider lets nobody in: HTTP 401")
    away = Failure(key="x", error=error, error_type="TurnedAway", attempts=1)
    patience = Patience(100, None)
    for _ in range(IN_A_ROW - 1):
        patience.transformed(away)
    with pytest.raises(ModelAway) as caught:
        patience.transformed(away)
    japanese, english = halves(str(caught.value))
    assert f"{IN_A_ROW} 件" in japanese
    assert "HTTP 401: key/account" in japanese
    assert english.isascii()
    assert "HTTP 401" in english
    with pytest.raises(TooManyFailed) as many:
        Patience(4, 10).failed(away)
    assert "4 件中 1 件" in halves(str(many.value))[0]
