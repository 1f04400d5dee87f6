"""A later export of the same chats: only what is new or has grown is asked about, and the vault stays its owner's."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.apps.notes.conftest import Study, knowledge
from tests.apps.notes.exports import claude, written
from tests.apps.notes.test_sessions import asked
from tests.apps.notes.test_writing import parsed
from tsuzuki.apps.notes import looking

MORE = ({"sender": "human", "text": "And in winter? (grown)"}, {"sender": "assistant", "text": "They eat less then."})


def month(folder: Path, *numbers: int, grown: tuple[int, ...] = (), **more: Any) -> Path:
    """Writes the export of a month; some conversations have grown since the one before."""
    told = [claude(number, **more) for number in numbers]
    for conversation in told:
        if int(conversation["uuid"].removeprefix("claude-")) in grown:
            conversation["chat_messages"] += MORE
    return written(folder / "conversations.json", told)


def everywhere(study: Study) -> dict[str, str]:
    """Reads the notes of the vault, wherever in it they are."""
    return {path.relative_to(study.vault).as_posix(): path.read_text() for path in sorted(study.vault.rglob("*.md"))}


async def test_a_later_export_is_asked_about_only_what_is_new_or_has_grown(study: Study, tmp_path: Path) -> None:
    january, _ = await study.imported(month(tmp_path / "jan", *range(20)))
    assert asked(study) == 20
    shutil.rmtree(january.folder)  # nothing but the vault remembers
    before = study.notes()
    session, told = await study.imported(month(tmp_path / "feb", *range(21), grown=(3,)))
    assert asked(study) == 22
    assert (told["success"], told["failed"], told["skipped"]) == (2, 0, 19)
    assert {each["reason"] for each in looking.passed_over(session)} == {"unchanged"}
    after = study.notes()
    assert set(after) == {*before, "Otters 20.md"}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"Otters 3.md"}
    _, again = await study.imported(month(tmp_path / "mar", *range(21), grown=(3,)))
    assert (again["success"], again["skipped"], asked(study)) == (0, 21, 22)


async def test_notes_that_were_moved_or_renamed_are_found_by_their_id(study: Study, tmp_path: Path) -> None:
    await study.imported(month(tmp_path / "jan", 0, 1, 2))
    (study.vault / "Animals").mkdir()
    (study.vault / "Otters 0.md").rename(study.vault / "Animals/On otters.md")
    (study.vault / "Otters 1.md").rename(study.vault / "Animals/Otters 1.md")
    (study.vault / "Otters 2.md").rename(study.vault / "Otters in general.md")
    names = set(everywhere(study))
    session, told = await study.imported(month(tmp_path / "feb", 0, 1, 2, grown=(0, 2)))
    assert (told["success"], told["skipped"], asked(study)) == (2, 1, 5)
    assert set(everywhere(study)) == names, "each is updated where it is"
    grown = looking.traced(session, "claude-0000")
    assert grown["output_path"] == str(study.vault / "Animals/On otters.md")


async def test_an_edited_note_gets_no_twin_unless_its_conversation_has_grown(study: Study, tmp_path: Path) -> None:
    await study.imported(month(tmp_path / "jan", 0, 1, 2))
    (study.vault / "Animals").mkdir()
    (study.vault / "Otters 1.md").rename(study.vault / "Animals/Otters 1.md")
    mine = {name: everywhere(study)[name] + "\nmy own words\n" for name in ("Otters 0.md", "Animals/Otters 1.md")}
    for name, text in mine.items():
        (study.vault / name).write_text(text)
    _, told = await study.imported(month(tmp_path / "feb", 0, 1, 2, grown=(1,)))
    assert (told["success"], told["skipped"], asked(study)) == (1, 2, 4)
    notes = everywhere(study)
    assert {name: notes[name] for name in mine} == mine
    [beside] = notes.keys() - {*mine, "Otters 2.md"}
    assert beside.startswith("Animals/Otters 1-"), "the new one is put beside the one that is theirs"
    await study.imported(month(tmp_path / "mar", 0, 1, 2, grown=(1,)))
    assert everywhere(study) == notes


async def test_an_edited_note_that_was_made_offline_is_not_paid_for(study: Study, tmp_path: Path) -> None:
    await study.imported(month(tmp_path / "jan", 0, 1), offline=True)
    edited = study.vault / "Otters 0.md"
    edited.write_text(edited.read_text() + "\nmy own words\n")
    _, told = await study.imported(month(tmp_path / "feb", 0, 1))
    assert (told["success"], told["skipped"], asked(study)) == (1, 1, 1), "the other is made by the model in its place"
    assert edited.read_text().endswith("my own words\n")
    assert set(study.notes()) == {"Otters 0.md", "Otters 1.md"}
    assert parsed(study.notes()["Otters 1.md"])[0]["model"] == "m-1"


async def test_properties_of_a_note_are_no_edit_and_survive_when_it_grows(study: Study, tmp_path: Path) -> None:
    await study.imported(month(tmp_path / "jan", 0))
    note = study.vault / "Otters 0.md"
    # As Obsidian writes it after a property was changed: in its own order and quotes, lists over several lines.
    front, body, _ = parsed(note.read_text())
    rest = "\n".join(f"{name}: '{front[name]}'" for name in front if name not in ("tags", "created"))
    note.write_text(
        f"---\naliases:\n  - Sea otters\ntags:\n  - mine\n  - a-b\nrating: 5\n{rest}\n"
        f"created: {front['created']}\n---\n{body}"
    )
    before = note.read_text()
    _, told = await study.imported(month(tmp_path / "feb", 0))
    assert (told["skipped"], note.read_text()) == (1, before)
    study.model.answer = lambda prompt: knowledge(prompt).replace("All of it.", "All of it, and winter.")
    await study.imported(month(tmp_path / "mar", 0, grown=(0,)))
    assert list(study.notes()) == ["Otters 0.md"], "it has no twin"
    front, body, _ = parsed(note.read_text())
    assert "and winter" in body
    assert (front["aliases"], front["rating"], front["tags"]) == (["Sea otters"], 5, ["mine", "a-b"])


async def test_a_deleted_note_stays_deleted_until_it_is_asked_for(study: Study, tmp_path: Path) -> None:
    january, _ = await study.imported(month(tmp_path / "jan", 0, 1, 2))
    shutil.rmtree(january.folder)
    (study.vault / "Otters 0.md").unlink()
    (study.vault / ".trash").mkdir()
    (study.vault / "Otters 1.md").rename(study.vault / ".trash/Otters 1.md")
    session, told = await study.imported(month(tmp_path / "feb", 0, 1, 2, grown=(0,)))
    assert (told["success"], told["skipped"], asked(study)) == (0, 3, 3)
    reasons = {each["item_id"]: each["reason"] for each in looking.passed_over(session)}
    assert reasons == {"claude-0000": "deleted", "claude-0001": "deleted", "claude-0002": "unchanged"}
    assert list(study.notes()) == ["Otters 2.md"]
    told = await study.told(await study.desk.retry(session, item="Otters 0"))
    assert (told["success"], asked(study)) == (1, 4)
    assert set(study.notes()) == {"Otters 0.md", "Otters 2.md"}
    _, told = await study.imported(month(tmp_path / "mar", 0, 1, 2, grown=(0,)), again=True)
    assert (told["success"], asked(study)) == (3, 7)
    assert set(study.notes()) == {"Otters 0.md", "Otters 1.md", "Otters 2.md"}


async def test_a_long_conversation_that_has_not_changed_is_not_cut_again(study: Study, tmp_path: Path) -> None:
    def long(count: int) -> list[Any]:
        said = ({"sender": "human", "text": f"{number} " + "otter " * 150} for number in range(count))
        return [claude(1, *said)]

    first = written(tmp_path / "jan/conversations.json", long(6))
    await study.imported(first, chunk=True, chunk_size=3000)
    before, names = asked(study), study.notes()
    assert before > 1
    for options in ({"chunk": True, "chunk_size": 3000}, {"chunk": True, "chunk_size": 2000}, {"chunk_size": 3000}):
        session, told = await study.imported(written(tmp_path / "feb/conversations.json", long(6)), **options)
        assert (told["skipped"], told["total"], asked(study)) == (1, 1, before)
        assert [each["reason"] for each in looking.passed_over(session)] == ["unchanged"]
    assert study.notes() == names
    await study.imported(written(tmp_path / "mar/conversations.json", long(7)), chunk=True, chunk_size=3000)
    assert asked(study) > before


async def test_one_note_can_be_made_again(study: Study, tmp_path: Path) -> None:
    session, _ = await study.imported(month(tmp_path / "jan", 0, 1, 2))
    study.model.answer = lambda prompt: knowledge(prompt).replace("All of it.", "All of it, better.")
    told = await study.told(await study.desk.retry(session, item="claude-0001"))
    assert (told["success"], told["skipped"], asked(study)) == (1, 2, 4)
    better = [name for name, text in study.notes().items() if "better" in text]
    assert better == ["Otters 1.md"]
    assert len(study.notes()) == 3
    again = await study.told(await study.desk.retry(session, item="claude-0001"))
    assert (again["success"], asked(study)) == (1, 5)
    told = await study.resumed(session)
    assert (told["success"], told["skipped"], asked(study)) == (0, 3, 5)


@pytest.mark.parametrize("chunk", [False, True])
async def test_a_note_that_was_written_and_edited_before_it_was_logged_gets_no_twin(
    study: Study, tmp_path: Path, *, chunk: bool
) -> None:
    """A kill between the file and its line leaves a note that only the vault knows."""
    text = "otter " * 700
    export = written(tmp_path / "jan/conversations.json", [claude(1, {"sender": "human", "text": text}, MORE[1])])
    session, _ = await study.imported(export, chunk=chunk, chunk_size=3000 if chunk else 30000, offline=True)
    names = everywhere(study)
    for path in study.vault.glob("*.md"):
        path.write_text(path.read_text() + "\nmy own words\n")
    session.loaded.unlink()
    kept = [line for line in session.stage_log.read_text().splitlines() if '"stage":"load"' not in line]
    session.stage_log.write_text("".join(f"{line}\n" for line in kept))
    session.change(runs=[])  # moved to a machine that does not know its runs
    told = await study.resumed(session)
    assert told["failed"] == 0
    assert set(everywhere(study)) == set(names)
    assert all(text.endswith("my own words\n") for text in everywhere(study).values())
