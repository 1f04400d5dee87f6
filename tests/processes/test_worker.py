"""`tsuzuki worker` as a process: finds its flows, executes, logs, and leaves as it is told to."""

import signal
from functools import partial

from tests.rooms import Room
from tsuzuki import Runs, Status
from tsuzuki.backends import WorkerState

FORKING = """
import os, signal
from tsuzuki import flow, task

@task
def told_at_once(number: int) -> int:
    child = os.fork()
    if not child:
        os._exit(0)
    os.kill(child, signal.SIGINT)
    os.waitpid(child, 0)
    return number

@flow
def forks(numbers: int) -> int:
    return len(told_at_once.map(range(numbers), concurrency=1))
"""


def states(room: Room) -> list[str]:
    records = room.asked(lambda runs: runs.backend.workers())
    return [record.state for record in records]


def test_it_executes_the_flows_of_a_file_and_logs_json_lines(any_room: Room) -> None:
    worker = any_room.worker("--worker-id", "w1", "--tags", "default,gpu", "--concurrency", "3")
    run = any_room.submit("quick", number=21)
    assert any_room.end_of(run).status is Status.COMPLETED
    any_room.until(lambda: len(worker.log) > 1, "the end is logged")
    first, last = worker.log[0], worker.log[-1]
    told = "worker w1 takes runs tagged default, gpu; flows: waits, stubborn, quick, partly, paces, fails, dies"
    assert first["message"].startswith(told)  # those of installed applications come behind
    assert (last["run_id"], last["flow_name"], last["tag"], last["worker_id"]) == (run.id, "quick", "default", "w1")
    assert {"ts", "service", "level", "logger", "message", "pathname", "lineno", "func"} <= last.keys()


def test_told_to_stop_it_finishes_what_is_under_way_and_takes_no_more(any_room: Room) -> None:
    worker = any_room.worker()
    first = any_room.submit("waits", name="a")
    any_room.until((any_room.folder / "a.began").exists, "the run is under way")
    worker.send(signal.SIGTERM)
    any_room.until(lambda: "SIGTERM" in worker.out.read_text(), "it has heard")
    second = any_room.submit("quick")
    (any_room.folder / "a.open").touch()
    assert worker.ended() == 0
    assert any_room.row(first).status is Status.COMPLETED
    assert any_room.row(second).status is Status.PENDING
    assert states(any_room) == [WorkerState.STOPPED_GRACEFUL]


def test_what_does_not_end_within_the_grace_period_is_handed_back(any_room: Room) -> None:
    worker = any_room.worker(TSUZUKI_CANCEL_GRACE_PERIOD_SEC="0.2")
    run = any_room.submit("waits", name="a")
    any_room.until((any_room.folder / "a.began").exists, "the run is under way")
    worker.send(signal.SIGTERM)
    assert worker.ended() == 0
    row = any_room.row(run)
    assert (row.status, row.holder) == (Status.PENDING, None)
    (any_room.folder / "a.open").touch()
    any_room.worker()
    assert any_room.end_of(run).status is Status.COMPLETED


def test_told_twice_it_leaves_at_once_and_another_one_goes_on(any_room: Room) -> None:
    worker = any_room.worker()
    run = any_room.submit("waits", name="a")
    any_room.until((any_room.folder / "a.began").exists, "the run is under way")
    worker.send(signal.SIGTERM)
    any_room.until(lambda: "again leaves at once" in worker.out.read_text(), "it has heard")
    worker.send(signal.SIGINT)
    assert worker.ended() == 130
    (any_room.folder / "a.open").touch()
    any_room.worker()
    assert any_room.end_of(run).status is Status.COMPLETED


def test_a_signal_to_a_child_that_a_task_has_just_forked_stops_no_worker(room: Room) -> None:
    (room.folder / "forking.py").write_text(FORKING)
    worker = room.worker("--flows", "forking.py")
    assert room.end_of(room.submit("forks", numbers=30)).status is Status.COMPLETED
    assert "SIGINT" not in worker.out.read_text()


def test_flows_come_from_packages_entry_points_and_resolvers(room: Room) -> None:
    package = room.folder / "team" / "deep"
    package.mkdir(parents=True)
    (room.folder / "team/__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    flow = "from tsuzuki import flow\n@flow\ndef {0}() -> str:\n    return '{0}'\n"
    (package / "inner.py").write_text(flow.format("packaged"))
    (room.folder / "offered.py").write_text(flow.format("offered"))
    (room.folder / "find.py").write_text(flow.format("found") + "def find(name):\n    return {'found': found}[name]\n")
    entry = room.folder / "offered-1.dist-info"
    entry.mkdir()
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1\n")
    (entry / "entry_points.txt").write_text("[tsuzuki.flows]\noffered = offered\n")
    arguments = ("worker", "--flows", "team", "--flow-resolver", "find:find")
    room.start(*arguments, PYTHONPATH=str(room.folder))
    for name in ("packaged", "offered", "found"):
        assert room.end_of(room.submit(name)).status is Status.COMPLETED, name
    row = room.end_of(room.submit("nobody"))
    assert row.status is Status.FAILED
    assert row.error is not None
    assert row.error.message.startswith("flow_not_found: ")


def test_a_yaml_flow_may_call_the_tasks_of_its_files_and_what_is_allowed(room: Room) -> None:
    (room.folder / "mypkg.py").write_text("def shout(text):\n    return text.upper()\n")
    (room.folder / "a.open").touch()
    text = """
flow:
  graph: open >> shout
  defaults: {name: a}
tasks:
  open: {callable: "flows:gate"}
  shout: {callable: "mypkg:shout", inputs: {text: $node.open.output}}
"""
    refused = room.worker()
    run = room.asked(lambda runs: runs.submit("mine", {"name": "a"}, workflow=text))
    row = room.end_of(run)
    assert row.status is Status.FAILED
    assert row.error is not None
    assert "--allow-callables 'mypkg.*'" in row.error.message
    refused.send(signal.SIGTERM)
    assert refused.ended() == 0
    room.worker("--allow-callables", "mypkg*", PYTHONPATH=str(room.folder))
    run = room.asked(lambda runs: runs.submit("mine", {"name": "a"}, workflow=text))
    assert room.end_of(run).status is Status.COMPLETED


def test_a_yaml_flow_reads_only_the_variables_that_the_worker_exposes(room: Room) -> None:
    (room.folder / "mypkg.py").write_text("def shout(text):\n    return text.upper()\n")
    text = """
flow: {graph: shout}
tasks:
  shout: {callable: "mypkg:shout", inputs: {text: $env.GREETING}}
runtime: {expose_env: [GREETING]}
"""
    start = partial(room.worker, PYTHONPATH=str(room.folder), GREETING="hello from the worker")
    refused = start("--allow-callables", "mypkg")
    row = room.end_of(room.asked(lambda runs: runs.submit("mine", workflow=text)))
    assert row.status is Status.FAILED
    assert row.error is not None
    assert "does not expose $env.GREETING" in row.error.message
    assert "--expose-env GREETING" in row.error.message
    assert "hello from" not in str(row)
    refused.send(signal.SIGTERM)
    assert refused.ended() == 0
    start("--allow-callables", "mypkg", "--expose-env", "GREETING,OTHER")
    run = room.asked(lambda runs: runs.submit("mine", workflow=text))
    assert room.end_of(run).status is Status.COMPLETED


def test_a_yaml_flow_cannot_call_the_tasks_of_applications(room: Room) -> None:
    text = """
flow: {graph: a}
tasks: {a: {callable: plan, inputs: {session_id: $env.DATABASE_URL}}}
runtime: {expose_env: [DATABASE_URL]}
"""
    room.worker("--expose-env", "DATABASE_URL", DATABASE_URL="env-secret-value-4711")
    for name in ("plan", "tsuzuki.apps.notes.flows:plan"):
        workflow = text.replace("plan", name)
        row = room.end_of(room.asked(partial(Runs.submit, flow="x", workflow=workflow)))
        assert row.status is Status.FAILED
        assert row.error is not None
        assert "registered task" in row.error.message
        assert "4711" not in str(row)


def test_bad_arguments_are_told_in_one_line(room: Room) -> None:
    for arguments, words in (
        (("--flows", "flows.py", "--tags", "a.b"), "each of --tags is a text of letters, digits, _ and -"),
        (("--flows", "nowhere.py"), "there is no file"),
        (("--flow-resolver", "flows.py:missing"), "has no function 'missing'"),
    ):
        process = room.start("worker", *arguments)
        assert process.ended() == 1
        assert words in process.said
        assert len(process.said.splitlines()) == 1
    strict = room.start("worker", "--flows", "flows.py", "--strict-config", TSUZUKI_LOG_LEVEL="loud")
    assert strict.ended() == 1
    assert "TSUZUKI_LOG_LEVEL='loud'" in strict.said


def test_a_worker_whose_parent_is_gone_ends_in_order(room: Room) -> None:
    worker = room.worker(before=("--end-with-parent",))
    worker.leave_alone()
    assert worker.ended() == 0
    assert states(room) == [WorkerState.STOPPED_GRACEFUL]
