"""Bulk runs: one at a time, target by target, with reasons; cancelled, resumed, retried, and never done twice."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.apps.commits.conftest import Office
from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository
from tsuzuki import Status
from tsuzuki.apps.commits.gathering import gathering
from tsuzuki.apps.commits.ledger import ledger_of
from tsuzuki.apps.commits.records import Commit, Project, Target
from tsuzuki.apps.commits.refusals import (
    BranchBusy,
    BulkRunning,
    NoConnection,
    NoTargets,
    NothingFailed,
    NothingRunning,
    NotThere,
)

BRANCHES = ("a", "b", "c", "d", "e")
LOOK = 0.01


@pytest.fixture
async def project(office: Office, repository: Repository, gitlab: GitLabDouble) -> Project:
    """A project with five branches besides main, all of them collected once, and a worker."""
    for name in BRANCHES:
        repository.git("branch", name)
    gitlab.host(repository.path)
    found = (await office.connected(gitlab))[0]
    await office.work()
    await office.collected(found, *BRANCHES)
    gitlab.requests.clear()
    return found


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(LOOK)


async def test_targets_are_every_pair_with_a_history_in_order(
    office: Office, project: Project, gitlab: GitLabDouble
) -> None:
    summary = await office.bulk()
    assert (summary.run_status, summary.total_targets, summary.success_count) == ("completed", 5, 5)
    assert (summary.failed_count, summary.pending_count) == (0, 0)
    assert [path.rpartition("/")[2] for path in gitlab.requests] == list(BRANCHES)
    row = await office.runs.get(summary.run_id)
    assert (row.done, row.failed, row.status) == (5, 0, Status.COMPLETED)


async def test_without_targets_nothing_is_started(office: Office) -> None:
    with pytest.raises(NoTargets, match="収集対象が見つかりません"):
        await office.desk.start()
    assert office.rows("SELECT * FROM bulk_collection_runs") == []
    assert await office.runs.list() == []


async def test_of_many_simultaneous_starts_one_succeeds(office: Office, project: Project, gitlab: GitLabDouble) -> None:
    gitlab.hold.clear()
    starts = await asyncio.gather(*[office.desk.start() for _ in range(20)], return_exceptions=True)
    refused = [start for start in starts if isinstance(start, BaseException)]
    assert len(refused) == 19
    assert all(isinstance(each, BulkRunning) and "一括収集が既に実行中です" in str(each) for each in refused)
    with pytest.raises(BulkRunning):
        await office.desk.retry()
    with pytest.raises(BranchBusy):
        await office.desk.remove_branch(Target(project.project_id, "a"))
    gitlab.hold.set()
    await office.ended(next(start.run_id for start in starts if not isinstance(start, BaseException)))


CAUSES: dict[str, tuple[dict[str, Any], str]] = {
    "a": ({"status": 401}, "401"),
    "b": ({"status": 403}, "403"),
    "c": ({"status": 404}, "404"),
    "d": ({"status": 429, "headers": {"Retry-After": "9999"}}, "429"),
    "e": ({"status": 503}, "5xx"),
}


async def test_each_cause_has_its_message_and_the_others_go_on(
    office: Office, project: Project, gitlab: GitLabDouble, repository: Repository
) -> None:
    await office.collected(project, "main")
    for name, (how, _) in CAUSES.items():
        gitlab.fail(f"/branches/{name}", **how)
    summary = await office.bulk()
    assert (summary.run_status, summary.success_count, summary.failed_count) == ("completed", 1, 5)
    messages = office.messages(summary.run_id)
    assert all(sign in messages[name] for name, (_, sign) in CAUSES.items())
    assert len(set(messages.values())) == 5
    told = " ".join(messages.values())
    assert TOKEN not in told
    assert not re.search(r"\S+@\S+", told)
    row = await office.runs.get(summary.run_id)
    assert (row.status, row.done, row.failed) == (Status.COMPLETED, 1, 5)


async def test_network_and_storage_have_messages_too(
    office: Office, project: Project, gitlab: GitLabDouble, repository: Repository
) -> None:
    gitlab.fail("/branches/a", drop=True)
    repository.git("branch", "-f", "b", repository.commit("2026-05-01T00:00:00+00:00", {"new": "1"}))
    refuse = "CREATE TRIGGER full BEFORE INSERT ON commits BEGIN SELECT RAISE(ABORT, 'disk full'); END"
    office.rows(refuse)
    summary = await office.bulk()
    office.rows("DROP TRIGGER full")
    messages = office.messages(summary.run_id)
    assert "接続できません" in messages["a"]
    assert "保存に失敗しました" in messages["b"]
    assert summary.success_count == 3


async def test_a_retry_is_a_new_run_of_exactly_what_failed(
    office: Office, project: Project, gitlab: GitLabDouble
) -> None:
    faults = [gitlab.fail(f"/branches/{name}", 403) for name in ("b", "d")]
    first = await office.bulk()
    before = office.rows("SELECT * FROM bulk_collection_results WHERE run_id = ?", first.run_id)
    for fault in faults:
        fault.times = 0
    gitlab.requests.clear()
    again = await office.desk.retry(first.run_id, pause=0)
    second = await office.settled(again.run_id)
    assert (second.total_targets, second.success_count) == (2, 2)
    assert [path.rpartition("/")[2] for path in gitlab.requests] == ["b", "d"]
    assert office.rows("SELECT * FROM bulk_collection_results WHERE run_id = ?", first.run_id) == before
    with pytest.raises(NothingFailed, match="失敗した対象が見つかりません"):
        await office.desk.retry()
    with pytest.raises(NotThere):
        await office.desk.retry("no such run")


async def stopped_in_the_middle(office: Office, gitlab: GitLabDouble) -> str:
    """Starts a bulk run, and cancels it while its third target waits for a limit that lasts."""
    gitlab.fail("/branches/b", 403, times=1)
    limit = gitlab.fail("/branches/c", 429, headers={"Retry-After": "50"})
    started = await office.desk.start(pause=0)
    await until(lambda: gitlab.asked("/branches/c"))
    async with asyncio.timeout(45):  # a cancel ends the wait: it does not last the fifty seconds
        stands = await office.desk.cancel(started.run_id)
    limit.times = 0
    assert stands is not None
    assert stands.summary.run_status == "cancelled"
    assert (stands.summary.success_count, stands.summary.failed_count, stands.summary.pending_count) == (1, 1, 3)
    assert stands.current_target is None
    return started.run_id


async def test_a_cancelled_run_keeps_what_is_finished_and_goes_on_with_the_rest(
    office: Office, project: Project, gitlab: GitLabDouble
) -> None:
    run_id = await stopped_in_the_middle(office, gitlab)
    assert office.rows("SELECT completed_at_utc FROM bulk_collection_runs") != [(None,)]
    gitlab.requests.clear()
    resumed = await office.desk.start(pause=0)
    assert (resumed.run_id, resumed.resumed) == (run_id, True)
    summary = await office.settled(run_id)
    assert (summary.run_status, summary.success_count, summary.failed_count) == ("completed", 4, 1)
    assert [path.rpartition("/")[2] for path in gitlab.requests] == ["c", "d", "e"]


async def test_a_cancelled_run_can_be_left_for_a_fresh_one(
    office: Office, project: Project, gitlab: GitLabDouble
) -> None:
    run_id = await stopped_in_the_middle(office, gitlab)
    summary = await office.bulk(fresh=True)
    assert summary.run_id != run_id
    assert summary.success_count == 5
    with pytest.raises(NothingRunning):
        await office.desk.cancel()
    with pytest.raises(NothingRunning):
        await office.desk.cancel(run_id)


async def test_a_cancel_of_one_run_never_reaches_another(
    office: Office, project: Project, gitlab: GitLabDouble
) -> None:
    first = await office.bulk()
    gitlab.hold.clear()
    second = await office.desk.start()
    with pytest.raises(NothingRunning):
        await office.desk.cancel(first.run_id)
    gitlab.hold.set()
    assert (await office.settled(second.run_id)).run_status == "completed"


async def test_what_the_run_has_settled_before_a_crash_is_not_collected_again(
    office: Office, repository: Repository, gitlab: GitLabDouble
) -> None:
    """The application's transaction was kept, the engine's fact was not: no worker ran yet when it was written."""
    for name in BRANCHES:
        repository.git("branch", name)
    gitlab.host(repository.path)
    found = (await office.connected(gitlab))[0]
    for name in BRANCHES:  # stored once, without a worker
        with gathering(office.desk.ledger, Target(found.project_id, name), "", bulk=False) as first:
            first.add([Commit(repository.head(), "Ada", "", "2026-02-10T10:00:00+00:00", 1, 0, 0, 1)])
            first.settle(repository.head())
    started = await office.desk.start(pause=0)
    with gathering(office.desk.ledger, Target(found.project_id, "b"), started.run_id, bulk=True) as second:
        second.add([Commit("f" * 40, "Ada", "", "2026-02-11T10:00:00+00:00", 1, 0, 0, 1)])
        second.settle(None)
    gitlab.requests.clear()
    await office.work()
    summary = await office.settled(started.run_id)
    assert (summary.success_count, summary.failed_count) == (5, 0)
    results = {r.branch_name: r.new_commits_count for r in office.desk.bulk_runs.results(started.run_id)}
    assert results == {"a": 0, "b": 1, "c": 0, "d": 0, "e": 0}
    assert [path.rpartition("/")[2] for path in gitlab.requests] == ["a", "c", "d", "e"]


async def test_a_run_whose_starter_died_writes_its_row_itself(office: Office, project: Project) -> None:
    run = await office.runs.submit("commits_bulk", {"pause": 0}, key="commits:bulk")
    summary = await office.settled(run.id)
    assert (summary.run_status, summary.total_targets) == ("completed", 5)


async def test_a_row_follows_what_became_of_the_engines_run(
    office: Office, project: Project, gitlab: GitLabDouble
) -> None:
    gitlab.hold.clear()
    started = await office.desk.start()
    await office.runs.cancel(started.run_id)
    gitlab.hold.set()
    await office.ended(started.run_id)
    summary = await office.settled(started.run_id)
    assert summary.run_status == "cancelled"
    office.rows("SELECT 1")
    orphan = "00000000-0000-4000-8000-000000000000"
    office.desk.bulk_runs.open(orphan)
    assert (await office.bulk(fresh=True)).run_status == "completed"
    assert office.desk.bulk_runs.summary(orphan).run_status == "cancelled"


async def test_missing_connections_are_told_before_anything_starts(office: Office, project: Project) -> None:
    office.desk.disconnect(1)
    with pytest.raises(NoConnection, match="接続設定がありません"):
        await office.desk.start()


async def test_a_connection_that_is_registered_again_has_its_projects_again(
    office: Office, project: Project, gitlab: GitLabDouble, repository: Repository
) -> None:
    other = (await office.desk.sync(office.desk.connect("git", str(repository.path))))[0]
    await office.collected(other, "main")
    office.desk.disconnect(1)
    assert [known.connection_id for known in office.desk.projects.projects()] == [None, 2]
    assert await office.desk.branches(office.desk.projects.project(project.project_id)) == []
    summary = await office.bulk()
    assert (summary.success_count, summary.failed_count) == (1, 5), "what can be collected is"
    assert all("接続を登録してください" in text for text in office.messages(summary.run_id).values())
    with pytest.raises(NoConnection, match="接続設定がありません"):
        await office.desk.retry()
    assert [known.project_id for known in await office.connected(gitlab)] == [project.project_id]
    retried = await office.desk.retry(pause=0)
    assert (await office.settled(retried.run_id)).success_count == 5


async def test_a_token_that_vanished_is_told_before_anything_starts(office: Office, project: Project) -> None:
    (office.folder / "commits-tokens.json").unlink()
    with pytest.raises(NoConnection, match="トークンがありません"):
        await office.desk.start()


async def test_history_is_kept_until_it_is_to_be_forgotten(office: Office, project: Project) -> None:
    runs = [(await office.bulk()).run_id for _ in range(3)]
    assert [summary.run_id for summary in office.desk.bulk_runs.history()] == runs[::-1]
    old = "UPDATE bulk_collection_runs SET started_at_utc = :at, completed_at_utc = :at WHERE run_id = :id"
    with office.desk.ledger.writing() as connection:
        connection.execute(old, {"at": "2020-01-01T00:00:00+00:00", "id": runs[0]})
    assert office.desk.bulk_runs.forget(30) == 1
    assert len(office.rows("SELECT * FROM bulk_collection_results")) == 10
    assert len(office.rows("SELECT * FROM commits")) == 10


async def test_no_token_is_in_any_file_but_its_own(office: Office, project: Project, gitlab: GitLabDouble) -> None:
    gitlab.fail("/branches/a", 401)
    await office.bulk()
    files = [file for file in office.folder.rglob("*") if file.is_file()]
    assert [file.name for file in files if TOKEN.encode() in file.read_bytes()] == ["commits-tokens.json"]
    for name in ("commits-tokens.json", "commits.db"):
        assert oct((office.folder / name).stat().st_mode)[-3:] == "600"
    assert TOKEN not in str(office.desk.projects.connections())


def test_a_tenant_has_a_file_of_its_own(tmp_path: Path) -> None:
    assert ledger_of("", tmp_path).file == tmp_path / "commits.db"
    assert ledger_of("../up", tmp_path).file == tmp_path / "tenants" / "..%2Fup" / "commits.db"
