"""The commands that speak to a gateway."""

import json
import re
import signal
from typing import Any

import pytest
from click.testing import CliRunner

from tests.client.conftest import Place
from tests.commands import Told, told
from tsuzuki import Client
from tsuzuki.cli import main


def ended(place: Place, *arguments: str, code: int = 0, **variables: str) -> Told:
    """Lets a command come to its end, which must be the expected one."""
    chosen = {"TSUZUKI_SERVER": place.server} | variables
    seen = told(place.room.folder, *arguments, variables=chosen)
    if seen is None:
        process = place.room.start(*arguments, **chosen)
        seen = Told(process.ended(), process.out.read_text(), process.said)
    assert seen.code == code, f"exit code {seen.code}: {seen.err}{seen.out}"
    return seen


def said(place: Place, *arguments: str, code: int = 0) -> str:
    return ended(place, *arguments, code=code).out


def parsed(place: Place, *arguments: str, code: int = 0) -> Any:
    return json.loads(said(place, *arguments, code=code))


def test_params_come_from_files_objects_and_single_values_and_the_later_wins(place: Place) -> None:
    (place.room.folder / "base.json").write_text('{"number": 1}', encoding="utf-8-sig")  # as Windows writes it
    for arguments, number in (
        (("--params-file", "base.json", "--params", '{"number": 2}', "--param", "number=3"), 3),
        (("--param", "number=3", "--params", '{"number": 2}'), 2),
        (("--param", "number=3", "--params", '{"number": 2}', "-p", "number=4", "--params-file=base.json"), 1),
    ):
        run = parsed(place, "submit", "quick", *arguments, "-o", "json")
        assert parsed(place, "get", run["run_id"], "-o", "json")["params"] == {"number": number}


def test_a_flow_that_no_living_worker_knows_is_refused_with_what_is_meant(place: Place) -> None:
    before = len(parsed(place, "list", "-o", "json", "--limit", "1000"))
    told = ended(place, "submit", "quik", code=1)
    assert "no living worker knows the flow 'quik'; did you mean 'quick'?" in told.err
    assert "--allow-unknown" in told.err
    assert len(parsed(place, "list", "-o", "json", "--limit", "1000")) == before
    assert parsed(place, "submit", "quik", "--allow-unknown", "-o", "json")["status"] == "PENDING"


def test_the_beginning_of_a_large_result_is_shown_with_its_size_and_how_to_see_it_all(place: Place) -> None:
    run_id = parsed(place, "submit", "repeats", "-p", "size=300000", "--watch", "-o", "json")["run_id"]
    shown = said(place, "get", run_id)
    assert len(shown) < 6000
    assert re.search(r"… cut after 4 KB of 293 KB; `tsuzuki get \d+ --json` shows all of it", shown)
    assert len(parsed(place, "get", run_id, "--json")["result"]) == 300_000


def test_a_run_is_submitted_and_watched_to_its_end(place: Place) -> None:
    process = ended(place, "submit", "quick", "--param", "number=4", "--watch")
    assert process.out == "8\n"
    assert "is COMPLETED" in process.err
    told = parsed(place, "submit", "quick", "--param", "number=5", "--watch", "-o", "json")
    assert (told["status"], told["result"], told["flow"], told["error"]) == ("COMPLETED", 10, "quick", None)
    here = json.loads(ended(place, "run", "flows.py:quick", "--json", "--data-dir", "own").out)
    assert set(here) - set(told) == {"continued"}
    [run_id] = [run["run_id"] for run in parsed(place, "list", "-o", "json") if f"({run['run_id']})" in process.err]
    assert said(place, "get", run_id, "-o", "status") == "COMPLETED\n"
    assert "result      8" in said(place, "get", "--run-id", run_id)
    assert parsed(place, "watch", run_id, "-o", "json")["status"] == "COMPLETED"
    assert 'params={"number":4}' in said(place, "events", run_id)
    assert said(place, "events", run_id, "-o", "jsonl").splitlines()[-1].find("RunCompleted") > 0
    assert "quick" in said(place, "list", "--flow", "quick", "--limit", "3")
    assert run_id in {run["run_id"] for run in parsed(place, "list", "--flow", "quick", "-o", "json")}
    assert parsed(place, "list-vnext", "--limit", "1", "-o", "json").keys() == {"items", "next_cursor"}
    assert parsed(place, "tasks", run_id, "-o", "json")["status"] == "COMPLETED"
    assert "of quick called no tasks" in ended(place, "tasks", run_id).err


def test_a_failed_run_ends_a_watch_with_its_exit_code_and_is_a_dead_letter(place: Place) -> None:
    run_id = parsed(place, "submit", "fails", "--watch", "-o", "json", code=5)["run_id"]
    [letter] = [each for each in parsed(place, "dlq", "list", "-o", "json") if each["run_id"] == run_id]
    assert parsed(place, "dlq", "show", letter["id"])["reason"] == "execution_error"
    assert "a worker goes on" in said(place, "dlq", "replay", letter["id"])
    ended(place, "watch", run_id, code=5)
    [letter] = [each for each in parsed(place, "dlq", "list", "-o", "json") if each["run_id"] == run_id]
    assert "is dropped" in said(place, "dlq", "drop", letter["id"])


def test_a_cancel_waits_and_a_resume_goes_on(place: Place) -> None:
    run_id = said(place, "submit", "waits", "-p", "name=commands").split()[0]
    place.until_began("commands")
    assert "is CANCELLED: 0 never started, 0 finished anyway, 1 interrupted" in said(
        place, "cancel", "--run-id", run_id, "--wait", "--timeout-sec", "60"
    )
    assert "cut off     0 never started" in said(place, "get", run_id)
    place.open_gate("commands")
    said(place, "resume", run_id)
    assert said(place, "watch", run_id) == "COMPLETED\n"


def test_a_cancel_that_waits_in_vain_says_so(place: Place) -> None:
    run_id = parsed(place, "submit", "stubborn", "-p", "name=stubborn", "-o", "jsonl")["run_id"]
    place.until_began("stubborn")
    assert "is still CANCELLING after 0.2s" in said(place, "cancel", run_id, "--wait", "--timeout-sec", "0.2", code=1)
    place.open_gate("stubborn")
    with Client(place.server) as client:
        *_, last = client.watch_run(run_id)
    assert last["status"] in ("CANCELLED", "COMPLETED")


def test_ctrl_c_stops_watching_and_the_run_goes_on(place: Place) -> None:
    run_id = said(place, "submit", "waits", "-p", "name=watched").split()[0]
    place.until_began("watched")
    process = place.room.start("watch", run_id, TSUZUKI_SERVER=place.server)
    place.room.until(lambda: "is RUNNING" in process.said, "it watches")
    process.send(signal.SIGINT)
    assert process.ended() == 130
    assert "the run goes on" in process.said
    place.open_gate("watched")
    with Client(place.server) as client:
        *_, last = client.watch_run(run_id)
    assert last["status"] == "COMPLETED"


def test_items_workers_flows_and_metrics_are_shown(place: Place) -> None:
    run_id = parsed(place, "submit", "partly", "--watch", "-o", "json", code=6)["run_id"]
    failed = [json.loads(line) for line in said(place, "items", run_id, "--failed", "-o", "jsonl").splitlines()]
    assert sorted(item["key"] for item in failed) == ["0", "3", "6"]
    assert said(place, "items", run_id).splitlines()[0].split() == ["KEY", "TASK", "OUTCOME", "TRIES", "TOOK", "ERROR"]
    assert len(said(place, "items", run_id, "--limit", "2").splitlines()) == 3
    [one] = [json.loads(line) for line in said(place, "items", run_id, "--key", "3", "-o", "jsonl").splitlines()]
    assert (one["status"], list(one["inputs"].values())) == ("failed", [3])
    assert "ValueError" in said(place, "items", run_id, "--position", str(one["position"]))
    assert "items       6 done, 3 failed" in said(place, "get", run_id)
    [worker] = parsed(place, "workers", "-o", "json")
    assert "is hidden" in said(place, "workers", "--hide", worker["worker_id"])
    assert "no workers" in ended(place, "workers").err
    said(place, "workers", "--unhide", worker["worker_id"])
    assert "waits" in said(place, "flows")
    assert "tsuzuki_runs_total" in said(place, "metrics")


def test_items_are_found_by_how_they_ended_and_the_log_is_followed_over_http_as_on_the_store(place: Place) -> None:
    run_id = parsed(place, "submit", "partly", "--watch", "-o", "json", code=6)["run_id"]
    here = ("--data-dir", str(place.room.folder / ".tsuzuki"))
    for arguments, keys in (
        (("--status", "done"), {"1", "2", "4", "5", "7", "8"}),
        (("--error", "NO 3", "--step", "maybe"), {"3"}),
        (("--step", "nothing"), set()),
    ):
        assert {item["key"] for item in parsed(place, "items", run_id, *arguments, "-o", "json")} == keys
        lines = said(place, "items", run_id, *arguments, "--json", *here).splitlines()
        assert {json.loads(line)["key"] for line in lines} == keys
    for gate in range(1, 8):
        (place.room.folder / f"p.{gate}").touch()
    paces = said(place, "submit", "paces", "--param", "name=p").strip()
    followed = said(place, "logs", paces, "--follow")
    assert [line.rpartition("item ")[2] for line in followed.splitlines()] == [f"{n} is through" for n in range(8)]
    assert said(place, "logs", paces, *here) == followed


def test_many_runs_are_submitted_and_one_is_removed(place: Place) -> None:
    asked = [{"flow_name": "quick", "params": {"number": number}} for number in (1, 2)] + [{"flow_name": ""}]
    (place.room.folder / "many.jsonl").write_text("\n\n".join(map(json.dumps, asked)), encoding="utf-8-sig")
    process = ended(place, "submit-batch", "many.jsonl", "--idempotency-key", "night", code=1)
    first, second = process.out.split()
    assert "line 5: invalid request" in process.err
    assert said(place, "submit-batch", "many.jsonl", "--idempotency-key", "night", code=1).split() == [first, second]
    said(place, "watch", second)
    ended(place, "delete", second, code=1)  # nobody is there to be asked
    assert parsed(place, "delete", second, "--yes", "-o", "json") == {"run_id": second, "deleted": True}
    assert "tsuzuki list` shows the runs there" in ended(place, "get", second, code=1).err
    waits = said(place, "submit", "quick", "--not-before", "2999-01-31T08:00:00+00:00", "--priority", "5").strip()
    shown = parsed(place, "get", waits, "-o", "json")
    assert (shown["status"], shown["priority"], shown["not_before"] is not None) == ("PENDING", 5, True)


def test_a_yaml_flow_is_submitted_or_refused_with_line_and_column(place: Place) -> None:
    (place.room.folder / "good.yaml").write_text(
        'flow: {graph: one}\ntasks: {one: {callable: "flows:maybe", inputs: {number: 1}}}\n'
    )
    (place.room.folder / "bad.yaml").write_text("flow: {graph: one}\ntasks: {}\n")
    assert json.loads(said(place, "submit-yaml", "good.yaml", "--flow-name", "mine", "--watch")) == {"one": 1}
    told = ended(place, "get", "no-such-run", code=1).err
    assert re.search(r"error: run not found; `\S*tsuzuki list` shows the runs there \[ERR-TSUZUKI-0005\]", told)
    refused = ended(place, "submit-yaml", "bad.yaml", code=1)
    assert "line 1, column" in refused.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("submit", "quick", "--param", "number"), "say --param name=value"),
        (("submit", "quick", "--params", "[1]"), "must be one JSON object"),
        (("submit", "quick", "--params-file", "nowhere.json"), "cannot be read"),
        (("submit",), "tells more"),
        (("watch",), "say which run, for example `tsuzuki watch 1`"),
        (("get", "1", "--run-id", "1"), "say which run"),
        (("submit-yaml",), "for example `tsuzuki submit-yaml"),
        (("list", "--server", "localhost"), "for example --server http://127.0.0.1:8000"),
        (("list", "--server", "http://127.0.0.1:9", "--data-dir", "x"), "say one of them"),
        (("list", "--server", "http://127.0.0.1:9"), "is it up (`tsuzuki up`)?"),
        (("--server", "http://127.0.0.1:9", "list"), "is it up (`tsuzuki up`)?"),
        (("--server", "http://127.0.0.1:8", "list", "--server", "http://127.0.0.1:9"), "gateway at http://127.0.0.1:9"),
        (("--server", "http://127.0.0.1:9", "--api-key", "k", "watch", "1"), "gateway at http://127.0.0.1:9"),
        (("dlq", "--server", "http://127.0.0.1:9", "list"), "gateway at http://127.0.0.1:9"),
        (("--server", "http://127.0.0.1:9", "list", "--data-dir", "x"), "say one of them"),
        (("--server", "http://127.0.0.1:9", "keys", "list"), "works on a store and not on a gateway"),
    ],
)
def test_bad_arguments_are_one_line_with_a_hint_and_exit_code_1(arguments: tuple[str, ...], words: str) -> None:
    told = CliRunner().invoke(main, arguments)
    assert told.exit_code == 1
    assert words in told.stderr
    assert len([line for line in told.stderr.splitlines() if not line.startswith("using gateway ")]) == 1
    assert "ERR-TSUZUKI-" in told.stderr


def test_without_a_server_the_same_commands_look_at_the_store(place: Place) -> None:
    process = ended(place, "list", "--data-dir", "nothing-here")
    assert "no runs" in process.err
