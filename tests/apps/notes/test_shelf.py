"""Notes find their own files in the vault, whatever their titles are now, and no name but for its case."""

import asyncio
import errno
import json
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study, knowledge, lines
from tests.apps.notes.test_sessions import agreed, export
from tests.apps.notes.test_writing import parsed, sheet
from tsuzuki.apps.notes import ProcessingItem, vault
from tsuzuki.apps.notes.markdown import Note
from tsuzuki.apps.notes.presses import Presses
from tsuzuki.apps.notes.shelf import Shelf
from tsuzuki.apps.notes.writing import WriteFile


class Desk:
    """Writes notes as one run does that has some items."""

    def __init__(self, folder: Path, *items: str) -> None:
        self._write = WriteFile(folder, "2026-01-01", items=items)

    def write(
        self, item_id: str, title: str, content: str = "text", provider: str = "claude", model: str = "m-1"
    ) -> str:
        item = ProcessingItem(item_id, Path("x"), metadata={"source_provider": provider})
        return str(asyncio.run(self._write.run(item, Note(title, "s", content, model=model))).output_path)


def test_a_note_that_is_made_again_under_another_title_replaces_its_own(tmp_path: Path) -> None:
    for strange in ("Bom.md", "Mine.md"):
        (tmp_path / strange).write_bytes(b"---\ntitle: mine\n---\n\xff")
    (tmp_path / "folder.md").mkdir()
    first = Desk(tmp_path, "0: a", "b")
    assert (first.write("0: a", "Otters"), first.write("b", "Beavers")) == ("Otters.md", "Beavers.md")
    again = Desk(tmp_path, "0: a", "b")
    assert again.write("0: a", "On otters", "new") == "Otters.md"
    assert "new" in (tmp_path / "Otters.md").read_text()
    with (tmp_path / "Beavers.md").open("a") as file:
        file.write("my own words")
    assert again.write("b", "On beavers") == "On beavers.md", "one that was edited stays, and the new one is beside it"
    third = Desk(tmp_path, "0: a", "b")
    assert third.write("b", "All about beavers") == "On beavers.md"
    assert third.write("0: a", "Whose", provider="chatgpt") == "Whose.md", "the same id from elsewhere is another's"
    assert (tmp_path / "Beavers.md").read_text().endswith("my own words")


def test_what_another_import_has_put_there_meanwhile_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsuzuki.apps.notes.shelf.AGAIN", 0.0)
    monkeypatch.setattr("tsuzuki.apps.notes.shelf.SELDOM", 0.0)
    one, other = Desk(tmp_path, "a", "b"), Desk(tmp_path, "a", "b")
    assert (one.write("a", "Otters"), other.write("b", "Beavers")) == ("Otters.md", "Beavers.md")
    assert other.write("a", "On otters") == "Otters.md"
    assert one.write("b", "On beavers") == "Beavers.md"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_name_that_is_taken_in_another_case_is_taken(tmp_path: Path) -> None:
    (tmp_path / "bom.md").write_text("mine")
    (tmp_path / "cafe\u0301.md").write_text("mine")
    desk = Desk(tmp_path, *"abcdef")
    titles = {"a": "ABC", "b": "Abc", "c": "abc", "d": "Bom", "e": "CAFÉ", "f": "STRASSE"}
    names = [desk.write(item_id, title) for item_id, title in titles.items()]
    assert names[0] == "ABC.md"
    found = [path.name for path in tmp_path.iterdir()]
    assert len({unicodedata.normalize("NFC", name).casefold() for name in found}) == len(found) == 8
    other = Desk(tmp_path, *"abcdef")
    assert [other.write(item_id, title) for item_id, title in titles.items()] == names


def test_notes_that_are_written_at_once_do_not_share_a_name_in_any_case(tmp_path: Path) -> None:
    async def write() -> list[ProcessingItem]:
        step = WriteFile(tmp_path, "2026-01-01")
        titles = [title for _ in range(40) for title in ("ABC", "Abc", "abc", "abC")]
        items = [ProcessingItem(f"i{number}", Path("x")) for number in range(len(titles))]
        return await asyncio.gather(*(step.run(i, Note(t, "s", "c")) for i, t in zip(items, titles, strict=True)))

    names = {str(item.output_path).lower() for item in asyncio.run(write())}
    assert len(names) == 160
    assert "abc.md" in names


def test_a_name_is_free_again_where_its_note_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(vault, "_write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "no room")))
        with pytest.raises(OSError, match="no room"):
            desk.write("a", "Otters")
    assert desk.write("a", "Otters") == "Otters.md"


def test_processes_beside_the_run_write_where_it_says(tmp_path: Path) -> None:
    (tmp_path / "abc.md").write_text("mine")
    presses = Presses(1)
    try:
        deadline = time.monotonic() + 60
        while not presses.ready:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        first = Shelf(tmp_path, {"a", "b"}).written(presses.written, [sheet("ABC", "a"), sheet("Otters", "b")])
        assert "ABC.md" not in first
        paid = Note("T", "s", "paid", model="m-1")
        anew = [sheet("New", "a")._replace(note=paid), sheet("Newer", "b")._replace(note=paid)]
        assert Shelf(tmp_path, {"a", "b"}).written(presses.written, anew) == first
        before = [(tmp_path / str(name)).read_text() for name in first]
        offline = [sheet("New", "a"), sheet("C", "c"), sheet("Newer", "b")]
        assert Shelf(tmp_path, {"a", "b"}).written(presses.written, offline) == [first[0], "C.md", first[1]]
        assert [(tmp_path / str(name)).read_text() for name in first] == before
        assert presses.written(tmp_path, [sheet("Otters", "b")]) != ["Otters.md"], "nor where it was not looked for"
        assert (tmp_path / str(first[1])).read_text() == before[1]
    finally:
        presses.close()


async def test_an_export_that_is_imported_again_has_one_note_of_each_conversation(study: Study, tmp_path: Path) -> None:
    path = export(tmp_path, 3)
    await study.imported(path)
    names = set(study.notes())
    study.model.answer = lambda prompt: knowledge(prompt).replace('"title": "', '"title": "Another ')
    session, told = await study.imported(path, again=True)
    assert (told["success"], set(study.notes())) == (3, names)
    assert all("title: Another" in text for text in study.notes().values())
    agreed(study, session)


async def test_an_import_without_a_model_leaves_what_one_was_paid_for(study: Study, tmp_path: Path) -> None:
    path = export(tmp_path, 4)
    study.model.answer = lambda prompt: (  # some keep their title, some do not
        knowledge(prompt).replace('"title": "', '"title": "On ') if "(1)" in prompt else knowledge(prompt)
    )
    await study.imported(path, limit=3)
    paid = study.notes()
    assert all(parsed(text)[0]["model"] == "m-1" for text in paid.values())
    edited = study.vault / "Otters 0.md"
    edited.write_text(edited.read_text() + "my own words")
    paid[edited.name] = edited.read_text()
    session, told = await study.imported(path, offline=True, again=True)
    assert (told["success"], told["failed"]) == (4, 0)
    after = study.notes()
    assert {name: after[name] for name in paid} == paid
    assert after.keys() - paid == {"Otters 3.md"}, "no worse note beside one that was paid for"
    assert "model" not in parsed(after["Otters 3.md"])[0]
    assert {line["path"] for line in lines(session.loaded)} == after.keys()
    agreed(study, session)


async def test_a_note_that_took_the_place_of_one_made_offline_stays(study: Study, tmp_path: Path) -> None:
    path = export(tmp_path, 1)
    await study.imported(path, offline=True)
    study.model.answer = lambda prompt: knowledge(prompt).replace('"title": "', '"title": "On ')
    await study.imported(path)
    paid = study.notes()
    assert "title: On Otters 0" in paid["Otters 0.md"]
    await study.imported(path, offline=True, again=True)
    assert study.notes() == paid
    await study.imported(path, again=True)
    assert study.notes().keys() == paid.keys(), "with a model it is made anew"


def test_pieces_of_conversations_with_one_title_are_not_mixed(tmp_path: Path) -> None:
    def piece(whole: str, number: int) -> tuple[ProcessingItem, Note]:
        about: dict[str, Any] = {"source_provider": "claude", "conversation_id": whole, "total_chunks": 3}
        if number:
            about |= {"is_chunked": True, "chunk_index": number - 1, "parent_item_id": whole}
            about["chunk_filename"] = f"Long_{number:03d}.md"
        else:
            about["chunk_item_ids"] = ["x"]
        return ProcessingItem(f"{whole}-{number}" if number else whole, Path("x"), metadata=about), Note(
            "Long", "s", "c"
        )

    async def write(order: list[tuple[str, int]]) -> dict[tuple[str, int], str]:
        """Writes some as one run does, and as one that was killed does not get on."""
        step = WriteFile(tmp_path, "2026-01-01", items={"a", "b", "c"})
        found = await asyncio.gather(*(step.run(*piece(*each)) for each in order))
        return {each: str(item.output_path) for each, item in zip(order, found, strict=True)}

    (tmp_path / "LONG_002.md").write_text("mine")
    first = asyncio.run(write([("a", 1), ("b", 3), ("a", 3)]))
    (tmp_path / "LONG_002.md").unlink()
    second = asyncio.run(write([("b", 2), ("a", 2), ("c", 2), ("c", 1), ("b", 1)]))
    last = asyncio.run(write([("c", 3), ("c", 0), ("b", 0), ("a", 0)]))
    names = {**first, **second, **last}
    assert len(set(names.values())) == 12
    heads = {whole: {name.split("_")[0].removesuffix(".md") for (own, _), name in names.items() if own == whole}
             for whole in "abc"}  # fmt: skip
    assert all(len(head) == 1 for head in heads.values()), heads
    assert heads["c"] == {"Long"}
    assert all(name.removesuffix(".md").endswith(f"_00{number}") for (_, number), name in names.items() if number)
    assert asyncio.run(write([*reversed(names)])) == names, "and each writes its own anew"


@pytest.mark.parametrize("content", ["I'm sorry, but I can't help with that.", '{"a": 1}'])
async def test_a_refusal_in_the_form_of_a_note_is_none(study: Study, tmp_path: Path, content: str) -> None:
    answer = {"title": "T", "summary": "It is so.", "content": content, "tags": [], "references": []}
    study.model.answer = lambda _: json.dumps(answer)
    _, told = await study.imported(export(tmp_path, 1))
    assert (told["success"], told["failed"]) == (0, 1)


@pytest.mark.parametrize("said", ["I'm sorry, but I can't help with that.", "申し訳ありませんが、お答えできません。"])
async def test_a_refusal_in_words_costs_one_question(study: Study, tmp_path: Path, said: str) -> None:
    study.model.answer = lambda _: said
    _, told = await study.imported(export(tmp_path, 1))
    assert (told["success"], told["failed"]) == (0, 1)
    assert len(study.model.seen) == 1


async def test_an_empty_account_stops_the_import_at_once(study: Study, tmp_path: Path) -> None:
    quota = {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota."}
    study.model.denies = (429, quota)
    with pytest.raises(Exception, match="You exceeded your current quota"):
        await study.imported(export(tmp_path, 8))
    assert len(study.model.seen) <= 5, "those that were asked at the same moment"
