"""`tsuzuki list`, `get`, `logs`, `items` and `export`: what they show, and that they only look."""

import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.cli.conftest import Terminal
from tests.nats_server import NatsServer
from tsuzuki.cli import main
from tsuzuki.cli.narrow import columns


def test_runs_are_listed_for_people_and_for_programs(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:gated", "--tags", "night,big")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["b"]', code=5)
    head, newest, oldest = terminal.tsuzuki("list").stdout.splitlines()
    assert head.split()[:3] == ["RUN", "FLOW", "STATUS"]
    assert newest.split()[:3] == ["2", "strict", "FAILED"]
    assert oldest.split()[:4] == ["1", "gated", "COMPLETED", "20"]
    assert [row["number"] for row in terminal.json("list")] == [2, 1]


def test_the_list_can_be_filtered(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:gated", "--tags", "night")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["b"]', code=5)
    terminal.tsuzuki("run", "flows.py:chatty")
    for filters, numbers in {
        "--status failed": [2],
        "--status failed --status COMPLETED": [3, 2, 1],
        "--flow gated": [1],
        "--label night": [1],
        "--tag default": [3, 2, 1],
        "--tag gpu": [],
        "--key chat:hello": [3],
        "--limit 1": [3],
    }.items():
        store = str(terminal.folder / ".tsuzuki")
        shown = CliRunner().invoke(main, ["list", "--json", "--data-dir", store, *filters.split()])
        assert [row["number"] for row in json.loads(shown.stdout)] == numbers, filters


def test_a_completed_run_with_failures_is_shown_and_found_as_one(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:gated")
    terminal.tsuzuki("run", "flows.py:partly", "-p", 'names=["a","b","c"]', code=6)
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["b"]', code=5)
    assert terminal.tsuzuki("list", "--flow", "partly").stdout.split("\n")[1].split()[1:5] == [
        "partly",
        "COMPLETED",
        "2",
        "1",
    ]
    assert "COMPLETED, 1 failed" in terminal.tsuzuki("get", "2").stdout
    assert terminal.json("get", "2")["status"] == "COMPLETED"
    for filters, numbers in {
        "--status completed_with_failures": [2],
        "--status completed_with_failures --status failed": [3, 2],
        "--status completed_with_failures --status completed": [2, 1],
        "--status completed_with_failures --status interrupted": [2],
    }.items():
        assert [row["number"] for row in terminal.json("list", *filters.split())] == numbers, filters


def test_a_long_list_is_read_page_by_page(terminal: Terminal) -> None:
    script = (
        "import asyncio\nfrom tsuzuki import Runs\n"
        "async def main():\n    async with Runs.open() as runs:\n"
        "        await asyncio.gather(*(runs.submit('many', {'n': n}) for n in range(450)))\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=terminal.folder, check=True)
    numbers = [row["number"] for row in terminal.json("list", "--limit", "430")]
    assert len(numbers) == len(set(numbers)) == 430


def test_a_run_is_found_by_number_by_id_and_by_the_beginning_of_its_id(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:gated")
    run_id = terminal.row().id
    for reference in ("1", run_id, run_id[:12]):
        assert terminal.json("get", reference)["id"] == run_id


def test_get_shows_row_error_and_result(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:gated")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["b"]', code=5)
    shown = terminal.tsuzuki("get", "1").stdout
    assert "status      COMPLETED" in shown
    assert "result      380" in shown
    assert "flows.py:gated" in shown
    assert "b is bad" in terminal.tsuzuki("get", "2").stdout
    assert terminal.json("get", "1")["result"] == 380


def test_get_shows_the_beginning_of_large_params_with_their_size(terminal: Terminal) -> None:
    terminal.submit_shared(text="x" * 1_000_000)
    shown = terminal.tsuzuki("get", "1").stdout
    assert len(shown) < 6000
    assert "… cut after 4 KB of 977 KB; `tsuzuki get 1 --json` or `tsuzuki export 1` shows all of it" in shown
    assert len(terminal.json("get", "1")["params"]["text"]) == 1_000_000


def test_get_shows_progress_and_the_request_to_cancel_while_the_run_is_active(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    terminal.until(lambda: b'"done":10' in bytes(terminal.row().progress))
    shown = terminal.tsuzuki("get", "1").stdout
    assert "10/20   50%" in shown
    assert "RUNNING (executed by" in shown
    terminal.tsuzuki("cancel", "1", "--reason", "too dear")
    terminal.end(process, code=7)
    assert "by cli: too dear" in terminal.tsuzuki("get", "1").stdout


def test_get_shows_what_a_cancel_cut_off(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    assert terminal.json("get", "1")["cut"] is None
    assert "cut off" not in terminal.tsuzuki("get", "1").stdout
    terminal.tsuzuki("cancel", "1")
    terminal.end(process, code=7)
    assert "cut off     6 never started, 0 finished anyway, 4 interrupted" in terminal.tsuzuki("get", "1").stdout
    assert terminal.json("get", "1")["cut"] == {"never_started": 6, "finished_anyway": 0, "interrupted": 4}
    terminal.open_gate()
    terminal.tsuzuki("resume", "1")
    assert terminal.json("get", "1")["cut"] is None


def test_of_a_cancelled_run_that_nobody_executed_nothing_was_counted(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until_held(recorded=10, calls=14)
    process.kill()
    process.communicate()
    terminal.tsuzuki("cancel", "1")
    assert "cut off     nothing was counted" in terminal.tsuzuki("get", "1").stdout
    assert terminal.json("get", "1")["cut"] == {"never_started": 0, "finished_anyway": 0, "interrupted": 0}


def test_interrupted_runs_can_be_listed(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:strict", "-p", 'names=["b"]', code=5)
    killed = terminal.start("run", "flows.py:gated", "-p", "hold=10")
    terminal.until(lambda: len(terminal.calls()) == 15)
    killed.kill()
    killed.communicate()
    living = terminal.start("run", "flows.py:stubborn")
    terminal.until(lambda: "endless" in terminal.calls())
    terminal.submit_shared()
    for filters, numbers in {
        "interrupted": [2],
        "INTERRUPTED --limit 1": [2],
        "interrupted --flow strict": [],
        "interrupted --status failed": [1, 2],
        "interrupted --status failed --limit 1": None,
        "running": [2, 3],
    }.items():
        listed = [row["number"] for row in terminal.json("list", "--status", *filters.split())]
        assert len(listed) == 1 if numbers is None else sorted(listed) == numbers, filters
    [_, row] = terminal.tsuzuki("list", "--status", "interrupted").stdout.splitlines()
    assert row.split()[:3] == ["2", "gated", "interrupted"]
    terminal.open_gate()
    terminal.end(living)


def test_a_run_that_waits_with_its_process_is_not_interrupted(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:patient")
    terminal.until(lambda: [row["not_before"] for row in terminal.json("list")] not in ([], [0.0]))
    shown = terminal.tsuzuki("get", "1").stdout
    assert f"in process {process.pid}" in shown
    assert re.search(r"waits +waiting for Ms Sato, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n", shown)
    told = terminal.json("get", "1")
    assert (told["interrupted"], told["waiting_reason"]) == (False, "waiting for Ms Sato")
    assert told["waiting_until"] == told["not_before"]
    listed = terminal.tsuzuki("list").stdout.splitlines()[1]
    assert listed.split()[2] == "PENDING"
    assert "waiting for Ms Sato, until " in listed
    assert terminal.json("list", "--status", "interrupted") == []
    process.kill()
    process.wait()
    assert "interrupted" in terminal.tsuzuki("get", "1").stdout
    assert len(terminal.json("list", "--status", "interrupted")) == 1


def test_a_resume_asks_a_run_that_waits_again_at_once(terminal: Terminal) -> None:
    process = terminal.start("run", "flows.py:patient")
    terminal.until(lambda: terminal.calls().count("asked") == 1)
    terminal.until(lambda: [row["waiting_until"] for row in terminal.json("list")] not in ([], [None]))
    woken = terminal.tsuzuki("resume", "1")
    assert f"was woken: it continues in process {process.pid}" in woken.stdout
    terminal.until(lambda: terminal.calls().count("asked") == 2)
    process.kill()
    process.wait()
    again = terminal.start("resume", "1")
    terminal.until(lambda: terminal.calls().count("asked") == 3)
    terminal.until(lambda: terminal.json("get", "1")["waiting_until"] is not None)
    assert f"in process {again.pid}" in terminal.tsuzuki("get", "1").stdout
    again.kill()
    again.wait()


def test_a_large_result_is_shown_from_its_blob(terminal: Terminal) -> None:
    (terminal.folder / "large.py").write_text(
        "from tsuzuki import flow\n\n@flow\ndef large() -> str:\n    return 'x' * 3_000_000\n"
    )
    assert terminal.tsuzuki("run", "large.py").stdout == "x" * 3_000_000 + "\n"
    assert terminal.json("get", "1")["result"] == "x" * 3_000_000


def test_logs_have_what_was_logged_with_its_step_and_item(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:chatty", "-p", "times=2")
    shown = terminal.tsuzuki("logs", "1").stdout
    assert "logged hello0" in shown
    assert "WARNING warned hello1" in shown
    lines = terminal.lines("logs", "1", "--json")
    assert {line["name"] for line in lines} == {"speak"}
    assert [line["number"] for line in lines] == [1, 2, 3, 4]


def test_following_the_logs_ends_with_the_run(terminal: Terminal) -> None:
    (terminal.folder / "slow.py").write_text(
        "from flows import endless\nfrom tsuzuki import current, flow\n\n"
        "@flow\ndef slow() -> None:\n    current().log('before')\n    endless()\n    current().log('after')\n"
    )
    process = terminal.start("run", "slow.py")
    terminal.until(terminal.calls)
    follower = terminal.start("logs", "1", "--follow")
    assert follower.stdout is not None
    assert "before" in follower.stdout.readline()
    terminal.open_gate()
    assert "after" in terminal.end(follower).stdout
    terminal.end(process)


def test_items_show_how_each_ended(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:partly", "-p", 'names=["a","b"]', code=6)
    head, *rows = terminal.tsuzuki("items", "1").stdout.splitlines()
    assert head.split() == ["KEY", "TASK", "OUTCOME", "TRIES", "TOOK", "ERROR"]
    assert sorted(row.split()[1:4] for row in rows) == [["picky", "done", "1"], ["picky", "failed", "1"]]
    [failed] = terminal.lines("items", "1", "--failed", "--json")
    assert (failed["task"], failed["outcome"], failed["tries"]) == ("picky", "failed", 1)
    assert failed["error"] == "ValueError: b is bad"
    assert failed["inputs"] == {"name": "b"}
    terminal.tsuzuki("run", "flows.py:partly", "-p", r'names=["\u001b[31mred"]')
    assert "\\x1b[31mred" in terminal.tsuzuki("items", "2", "--key", "\x1b[31mred").stdout, "no key steers a terminal"
    whole = terminal.tsuzuki("items", "1", "--key", "b").stdout
    assert '{"name": "b"}' in whole
    assert "ValueError: b is bad" in whole
    [good] = terminal.lines("items", "1", "--key", "a", "--json")
    assert (good["inputs"], good["output"], good["error"]) == ({"name": "a"}, "A", None)
    assert terminal.lines("items", "1", "--position", str(good["position"]), "--json") == [good]
    assert "no such step or item" in terminal.tsuzuki("items", "1", "--key", "x", code=1).stderr


def test_very_long_keys_are_shortened_for_people_and_whole_for_programs(terminal: Terminal) -> None:
    long = ["a" * 100_000 + "1", "続" * 50_000 + "2"]
    (terminal.folder / "names.json").write_text(json.dumps({"names": [*long, "short"]}))
    terminal.bad(long[0])
    terminal.tsuzuki("run", "flows.py:partly", "--params", "names.json", code=6)
    shown = terminal.tsuzuki("items", "1").stdout
    assert max(map(len, shown.splitlines())) < 700
    assert sorted(row.partition(" ")[0][-1] for row in shown.splitlines()[1:]) == ["1", "2", "t"]
    assert len({columns(row.partition("picky")[0]) for row in shown.splitlines()[1:]}) == 1
    told = terminal.lines("items", "1", "--json")
    assert sorted(item["key"] for item in told) == sorted([*long, "short"])


def test_items_that_have_succeeded_since_are_not_failed_any_more(terminal: Terminal) -> None:
    terminal.bad("b")
    terminal.tsuzuki("run", "flows.py:partly", "-p", 'names=["a","b"]', code=6)
    terminal.bad()
    terminal.tsuzuki("resume", "1")
    ended = terminal.tsuzuki("items", "1", "--failed")
    assert ended.stdout == ""
    assert "no failed items" in ended.stderr


def test_an_export_has_the_run_and_every_fact(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:gated")
    printed = terminal.lines("export", "1")
    assert "wrote" in terminal.tsuzuki("export", "1", "--format", "jsonl", "-o", "run.jsonl").stderr
    written = [json.loads(line) for line in (terminal.folder / "run.jsonl").read_text().splitlines()]
    assert written == printed
    row, *facts = written
    assert (row["record"], row["result"]) == ("run", 380)
    assert [fact["position"] for fact in facts] == list(range(1, row["position"] + 1))
    assert facts[0]["kind"] == "Submitted"
    assert facts[-1]["kind"] == "RunCompleted"
    assert sum(fact["kind"] == "ItemDone" for fact in facts) == row["done"] == 20


def test_an_export_that_cannot_be_written_is_told(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    assert "cannot be written" in terminal.tsuzuki("export", "1", "-o", "nowhere/run.jsonl", code=1).stderr


@pytest.mark.parametrize("command", ["get", "logs", "items", "export", "cancel", "resume"])
def test_an_unknown_run_is_told(terminal: Terminal, command: str) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    ended = terminal.tsuzuki(command, "99", code=1)
    assert "run not found: '99'" in ended.stderr
    assert "[ERR-TSUZUKI-0005]" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *([command, "1"] for command in ("get", "logs", "items", "export", "cancel", "resume")),
        ["purge", "--older-than", "1d"],
        ["doctor"],
    ],
)
def test_where_there_is_no_store_none_is_made(terminal: Terminal, arguments: list[str]) -> None:
    ended = terminal.tsuzuki(*arguments, code=1)
    assert "there is no store at .tsuzuki/tsuzuki.db" in ended.stderr + ended.stdout
    assert not (terminal.folder / ".tsuzuki").exists()


def test_where_there_is_no_store_there_are_no_runs(terminal: Terminal) -> None:
    assert terminal.json("list") == []
    assert "no runs" in terminal.tsuzuki("list").stderr
    assert not (terminal.folder / ".tsuzuki").exists()


@pytest.mark.parametrize("where", [["--data-dir", "elsewhere"], ["--backend", "sqlite:elsewhere/tsuzuki.db"]])
def test_the_store_can_be_elsewhere(terminal: Terminal, where: list[str]) -> None:
    terminal.tsuzuki("run", "flows.py:gated", *where)
    assert terminal.json("list", *where)[0]["status"] == "COMPLETED"
    assert (terminal.folder / "elsewhere" / "tsuzuki.db").exists()
    assert not (terminal.folder / ".tsuzuki").exists()


def test_an_address_that_is_none_is_told(terminal: Terminal) -> None:
    assert "is no address of a store" in terminal.tsuzuki("list", "--backend", "redis://x", code=1).stderr


def test_a_reader_that_leaves_early_is_no_drama(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:gated", "-p", "items=5000", "-p", "hold=5000")
    process = terminal.start("items", "1")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("KEY")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == 1
    process.stderr.close()
    terminal.processes.remove(process)


def test_an_empty_list_tells_no_password(nats_server: NatsServer) -> None:
    address = nats_server.url.replace("//", "//bob:hunter2@")
    done = CliRunner().invoke(
        main, ["list", "--backend", f"{address}?prefix={nats_server.fresh()}"], prog_name="tsuzuki"
    )
    assert "hunter2" not in done.output
    assert nats_server.url in done.output


def test_an_empty_run_is_named_as_it_was_given(terminal: Terminal) -> None:
    terminal.tsuzuki("run", "flows.py:nothing")
    assert "run not found: ''" in terminal.tsuzuki("get", "", code=1).stderr
