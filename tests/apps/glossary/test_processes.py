"""Real processes: many starts at once, `kill -9` in every step, and the command to the end."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from tests.apps.glossary.conftest import TERMS, TEXT, Model, Study
from tsuzuki.apps.glossary.project import ProjectFile
from tsuzuki.apps.glossary.records import Document
from tsuzuki.apps.glossary.registry import Registry, folder_of
from tsuzuki.cli import main

PATIENCE = 60.0


async def test_fifty_starts_from_four_processes_make_one_run(study: Study) -> None:
    project = study.project(TEXT)
    command = [sys.executable, "-m", "tests.apps.glossary.starting", str(study.folder), str(project.project.id)]
    starters = [
        subprocess.Popen([*command, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for count in (13, 13, 12, 12)
    ]
    for starter in starters:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "ready\n"
    told = await asyncio.gather(*(asyncio.to_thread(starter.communicate, "go\n", PATIENCE) for starter in starters))
    lines = "".join(out for out, _ in told).splitlines()
    assert len(lines) == 50
    assert Counter(line.split()[0] for line in lines) == {"started": 1, "refused": 49}
    assert {line for line in lines if line.startswith("refused")} == {"refused 1 Run already running: 1"}
    assert [row.id for row in project.runs()] == [1]


def tsuzuki(folder: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    known = {name: value for name, value in os.environ.items() if not name.startswith("TSUZUKI_")}
    told = {**known, "TSUZUKI_DATA_DIR": str(folder / "data"), "TSUZUKI_LOAD_DOTENV": "0", **environment}
    command = [sys.executable, "-m", "tsuzuki.cli", "glossary", *arguments]
    return subprocess.Popen(command, env=told, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(folder: Path, *arguments: str, code: int = 0, environment: dict[str, str] | None = None) -> tuple[str, str]:
    """Runs a command here: most need no process of their own."""
    told = {"TSUZUKI_DATA_DIR": str(folder / "data"), "TSUZUKI_LOAD_DOTENV": "0", **(environment or {})}
    with contextlib.chdir(folder):
        done = CliRunner(env=told).invoke(main, ["glossary", *arguments])
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "more").mkdir(parents=True)
    (folder / "one.md").write_text(TEXT)
    (folder / "more" / "two.txt").write_text("\n\n".join(f"The {term} of two is another {term}." for term in TERMS))
    return folder


def test_a_kill_in_every_step_asks_nothing_again_that_was_answered(tmp_path: Path, docs: Path, model: Model) -> None:
    environment = {"OPENAI_API_KEY": "sk-test-0123456789abcdef", "TSUZUKI_LLM_CONCURRENCY": "1"}
    asked = ("--provider", "openai", "--model", "m-1", "--base-url", f"{model.double.url}/v1")
    how = ("generate", "-i", "docs", "-o", "glossary.md", "-q", *asked)
    model.double.delay = 0.03
    kills = 0
    for step, at in (("classify", 1), ("define", 3), ("review", 1), ("refine", 3)):
        process = tsuzuki(tmp_path, *how, **environment)
        until = time.monotonic() + PATIENCE
        while process.poll() is None and model.asked_for(step) < at + 1:
            assert time.monotonic() < until, (step, at)
            if step == "review" and model.asked_for(step) >= at:
                break  # with few terms there is one batch
            if step == "classify" and model.asked_for(step) >= at:
                break
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
    run(tmp_path, *how, environment=environment)
    repeated = {prompt: count for prompt, count in model.double.prompts.items() if count > 1}
    assert sum(count - 1 for count in repeated.values()) <= kills, "at most what was under way at each kill"
    registry = Registry(folder_of("", tmp_path / "data"))
    file = registry.file(1)
    rows = file.all("runs")
    assert [(row[1], row[2]) for row in rows] == [("full", "completed"), ("extract", "completed")]
    text = (tmp_path / "glossary.md").read_text()
    assert "worker refined" in text
    assert str(tmp_path) not in text + json.dumps(list(model.double.prompts))


def test_a_glossary_without_a_server_and_without_a_model(tmp_path: Path, docs: Path) -> None:
    assert "no project yet" in run(tmp_path, "terms", code=1)[1]
    assert "no project yet" in run(tmp_path, "projects", "list")[1]
    assert not (tmp_path / "data").exists(), "who only looks leaves nothing behind"
    closed = ("--provider", "ollama", "--base-url", "http://127.0.0.1:9")
    assert "cannot be reached" in run(tmp_path, "generate", "-i", "docs", "-o", "glossary.md", *closed, code=1)[1]
    assert "no project yet" in run(tmp_path, "projects", "list")[1], "nothing was begun"
    _, told = run(tmp_path, "generate", "-i", "docs", "-o", "glossary.md")
    assert "glossary.md: " in told
    text = (tmp_path / "glossary.md").read_text()
    assert "## worker" in text
    assert "A worker is a thing with number 0 in the engine." in text
    out, _ = run(tmp_path, "terms")
    assert "technical_term" in out
    assert json.loads(run(tmp_path, "refined", "--json")[0])[0]["definition"]
    run(tmp_path, "issues", "--type", "unclear")
    for kind in ("md", "csv", "json", "tbx"):
        out, _ = run(tmp_path, "export", "--format", kind)
        assert "worker" in out, kind
    run(tmp_path, "export", "docs", "-o", "glossary.tbx")
    root = ET.parse(tmp_path / "glossary.tbx").getroot()  # noqa: S314 - our own file
    assert (root.tag, root.get("type")) == ("{urn:iso:std:iso:30042:ed-2}tbx", "TBX-Basic")
    names = [each.text for each in root.iter("{urn:iso:std:iso:30042:ed-2}term")]
    assert "worker" in names
    run(tmp_path, "terms", "--exclude", "worker", "--require", "engine room")
    (docs / "one.md").write_text(TEXT + "\n\nA parcel is a box. Each parcel has a parcel number.")
    run(tmp_path, "generate", "-i", "docs", "-o", "glossary.csv", "-q")
    text = (tmp_path / "glossary.csv").read_text()
    assert "parcel," in text
    assert "\nworker," not in text
    assert "engine room" in text
    assert "docs" in run(tmp_path, "projects", "list")[0]
    assert run(tmp_path, "projects", "add", "second")[0] == "2\n"
    assert run(tmp_path, "projects", "clone", "docs", "third")[0] == "3\n"
    assert "say --yes" in run(tmp_path, "projects", "remove", "third", code=1)[1]
    run(tmp_path, "projects", "remove", "third", "--yes")
    assert "name a project" in run(tmp_path, "terms", code=1)[1]
    assert "there is no folder" in run(tmp_path, "generate", "-i", "nowhere", "-o", "x.md", code=1)[1]
    assert run(tmp_path, "projects", "list")[0].count("\n") == 3
    (tmp_path / "nothing").mkdir()
    assert "no document that can be read" in run(tmp_path, "generate", "-i", "nothing", "-o", "x.md", code=1)[1]
    for wrong, why in {
        ("-o", "nowhere/x.md"): "there is no folder nowhere",
        ("-o", "x.md", "--provider", "nobody"): "there is no provider",
        ("-o", "x.md", "--provider", "openai"): "needs a key",
    }.items():
        assert why in run(tmp_path, "generate", "-i", "docs", *wrong, code=1, environment={"OPENAI_API_KEY": ""})[1]
    assert run(tmp_path, "projects", "list")[0].count("\n") == 3, "nothing is begun that cannot come to an end"
    assert "name it .md" in run(tmp_path, "generate", "-i", "docs", "-o", "x.pdf", code=1)[1]


def test_a_glossary_whose_extraction_came_to_nothing_is_made_by_the_next_try(
    tmp_path: Path, docs: Path, model: Model
) -> None:
    asked = ("--provider", "openai", "--model", "m-1", "--base-url", f"{model.double.url}/v1")
    good = model.answers["classify"]
    model.answers["classify"] = lambda prompt: {"terms": [{"term": "Worker Bee", "category": "General Terms"}]}
    assert "none of the candidates" in run(tmp_path, "generate", "-i", "docs", "-o", "g.md", "-q", *asked, code=5)[1]
    model.answers["classify"] = good
    run(tmp_path, "generate", "-i", "docs", "-o", "g.md", "-q", *asked)
    assert "worker refined" in (tmp_path / "g.md").read_text()


def test_a_run_that_left_something_out_says_so_and_ends_with_6(tmp_path: Path, docs: Path, model: Model) -> None:
    asked = ("--provider", "openai", "--model", "m-1", "--base-url", f"{model.double.url}/v1")
    define = model.answers["define"]
    model.answers["define"] = lambda prompt: (
        "no" if "<term>lease<" in prompt or "<term>" not in prompt else define(prompt)
    )
    _, told = run(tmp_path, "generate", "-i", "docs", "-o", "g.md", "-q", *asked, code=6)
    assert "1 term could not be defined: 0 kept, 1 left out" in told
    assert "worker refined" in (tmp_path / "g.md").read_text()
    model.answers["define"] = define
    before = model.asked_for("define")
    run(tmp_path, "generate", "-i", "docs", "-o", "g.md", "-q", *asked)
    assert model.asked_for("define") == before + 1, "what was answered is not asked again"
    assert "lease refined" in (tmp_path / "g.md").read_text()


def test_a_folder_updates_its_own_documents_and_leaves_the_others_alone(tmp_path: Path, docs: Path) -> None:
    how = ("generate", "-i", "docs", "-o", "g.md", "-q")
    run(tmp_path, *how)
    project = ProjectFile(Registry(folder_of("", tmp_path / "data")), 1)
    project.documents.add([Document("browser.md", "A parcel is a box."), Document("three.md", "of the browser")])
    (docs / "more" / "two.txt").unlink()
    (docs / "one.md").write_text(f"{TEXT}\n\nMore.")
    (docs / "three.md").write_text("of the folder")
    _, told = run(tmp_path, *how[:-1])
    found = {each.file_name: each.content for each in project.documents.each()}
    assert found == {
        "one.md": f"{TEXT}\n\nMore.",
        "browser.md": "A parcel is a box.",
        "three.md": "of the browser",
    }
    assert "three.md: a document of that name was added elsewhere" in told


def test_the_command_says_that_a_model_is_silent(
    tmp_path: Path, docs: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.apps.glossary.asking.SILENCE_S", 0.05)
    classify = model.answers["classify"]
    model.double.delay = 0.5

    def slowly_once(prompt: str) -> object:
        model.double.delay = 0
        return classify(prompt)

    model.answers["classify"] = slowly_once
    asked = ("--provider", "openai", "--model", "m-1", "--base-url", f"{model.double.url}/v1")
    _, told = run(tmp_path, "generate", "-i", "docs", "-o", "g.md", *asked)
    assert "no answer from openai m-1 for 0 s; each try may take" in told
