"""Collections go on where they were: by revision range, by date where that is unknown, and each commit once."""

from pathlib import Path

import pytest

from tests.apps.commits.conftest import Office
from tests.apps.commits.gitlab_double import GitLabDouble
from tests.apps.commits.repositories import Repository, eventful
from tsuzuki.apps.commits.records import Project
from tsuzuki.apps.commits.statistics import Asked, statistics
from tsuzuki.errors import BadUsage


@pytest.fixture(params=["git", "gitlab"])
async def project(request: pytest.FixtureRequest, office: Office, repository: Repository) -> Project:
    """The repository as a project of either source."""
    await office.work()
    if request.param == "git":
        return (await office.desk.sync(office.desk.connect("git", str(repository.path))))[0]
    gitlab: GitLabDouble = request.getfixturevalue("gitlab")
    gitlab.host(repository.path)
    return (await office.connected(gitlab))[0]


async def test_the_first_collection_takes_everything_and_the_next_what_is_new(
    office: Office, repository: Repository, project: Project
) -> None:
    assert (await office.collected(project))["new_commits"] == {"main": 2}
    assert (await office.bulk()).success_count == 1
    repository.commit("2026-03-01T00:00:00+00:00", {"b": "1"})
    summary = await office.bulk()
    assert [r.new_commits_count for r in office.desk.bulk_runs.results(summary.run_id)] == [1]
    assert office.shas() == set(repository.logged())


async def test_commits_merged_late_with_older_dates_are_found(
    office: Office, repository: Repository, project: Project
) -> None:
    repository.git("checkout", "-q", "-b", "slow", "HEAD~1")
    late = repository.commit("2019-01-15T10:00:00+00:00", {"slow.txt": "1\n"})
    repository.git("checkout", "-q", "main")
    await office.collected(project, "main")
    assert late not in office.shas()
    repository.merge("slow", "2026-03-01T10:00:00+00:00")
    summary = await office.bulk()
    assert [r.new_commits_count for r in office.desk.bulk_runs.results(summary.run_id)] == [2]
    assert late in office.shas()


@pytest.mark.parametrize("swept", [False, True])
async def test_a_force_push_is_gone_on_from(
    office: Office, repository: Repository, project: Project, swept: bool
) -> None:
    await office.collected(project)
    before = office.shas()
    repository.git("reset", "-q", "--hard", "HEAD~1")
    rewritten = repository.commit("2026-02-05T10:00:00+00:00", {"a.txt": "other\n"})
    if swept:
        repository.forget()
    summary = await office.bulk()
    assert [r.new_commits_count for r in office.desk.bulk_runs.results(summary.run_id)] == [1]
    assert office.shas() == before | {rewritten}
    assert office.rows("SELECT head_sha FROM branch_heads") == [(rewritten,)]


@pytest.mark.parametrize("swept", [False, True])
async def test_commits_that_a_rebase_left_behind_are_not_counted(
    office: Office, repository: Repository, project: Project, swept: bool
) -> None:
    def totals(branch: str | None = None) -> tuple[int, int]:
        number = None if branch is None else project.project_id
        found = statistics(office.desk.ledger, Asked(project_id=number, branch_name=branch))
        return found.commits, found.additions

    repository.git("checkout", "-q", "-b", "topic")
    for day in range(1, 6):
        repository.commit(f"2026-02-1{day}T12:00:00+00:00", {f"t{day}.txt": "line\n" * 100})
    repository.git("checkout", "-q", "main")
    await office.collected(project, every=True)
    for again in range(3):
        repository.commit(f"2026-03-0{again + 1}T00:00:00+00:00", {f"m{again}.txt": "1\n"})
        repository.git("rebase", "-q", "main", "topic")
        repository.git("checkout", "-q", "main")
        if swept:
            repository.forget()
        assert (await office.bulk()).success_count == 2
    counted = repository.logged("--branches")
    assert totals() == (10, sum(added for added, _ in counted.values())) == (10, 507)
    assert totals("topic") == (10, 507)
    assert len(office.shas("topic")) > 10, "what was left behind stays stored"
    repository.git("branch", "-f", "topic", "main")
    await office.bulk()
    assert totals() == totals("main") == totals("topic")


@pytest.mark.parametrize("rounds", [1, 2])
async def test_history_that_was_rewritten_as_a_whole_arrives_as_a_whole(
    office: Office, repository: Repository, project: Project, rounds: int
) -> None:
    repository.commit("2024-02-10T10:00:00+00:00", {"old.txt": "1\n"})
    await office.collected(project)
    for number in range(rounds):
        script = f"GIT_AUTHOR_NAME=Rewritten{number}; export GIT_AUTHOR_NAME"
        repository.git("filter-branch", "-f", "--env-filter", script, "main", FILTER_BRANCH_SQUELCH_WARNING="1")
        repository.git("update-ref", "-d", "refs/original/refs/heads/main")
        repository.forget()
        await office.bulk()
    assert set(repository.logged()) <= office.shas()
    assert statistics(office.desk.ledger, Asked()).commits == len(repository.logged())


async def test_a_branch_that_was_deleted_fails_once_and_is_left_out_until_it_is_back(
    office: Office, repository: Repository, project: Project
) -> None:
    repository.git("branch", "merged")
    await office.collected(project, every=True)
    repository.git("branch", "-D", "merged")
    first = await office.bulk()
    assert (first.success_count, first.failed_count) == (1, 1)
    assert "leave it out until it is collected again" in office.messages(first.run_id)["merged"]
    second = await office.bulk()
    assert (second.total_targets, second.failed_count) == (1, 0)
    gone = {each.branch_name: each.gone_at_utc for each in office.desk.projects.branches(project.project_id)}
    assert gone["main"] is None
    assert gone["merged"] is not None
    assert office.shas("merged") == office.shas("main"), "what was collected stays"
    repository.git("branch", "merged")
    assert (await office.collected(project, "merged"))["new_commits"] == {"merged": 0}
    assert (await office.bulk()).success_count == 2


async def test_a_branch_that_was_pushed_back_brings_nothing_new(
    office: Office, repository: Repository, project: Project
) -> None:
    await office.collected(project)
    repository.git("reset", "-q", "--hard", "HEAD~1")
    assert (await office.collected(project))["new_commits"] == {"main": 0}


async def test_a_span_of_time_is_collected_and_gone_on_from_by_date(
    office: Office, repository: Repository, project: Project
) -> None:
    repository.commit("2020-01-01T00:00:00+00:00", {"old": "1"})
    done = await office.collected(project, since="2026-02-01", until="2026-02-10")
    assert done["new_commits"] == {"main": 1}
    assert office.rows("SELECT * FROM branch_heads") == []
    repository.commit("2026-03-01T00:00:00+00:00", {"b": "1"})
    summary = await office.bulk()
    new = office.desk.bulk_runs.results(summary.run_id)[0].new_commits_count
    assert new == 1
    assert "2020-01-01T00:00:00+00:00" not in {row[0] for row in office.rows("SELECT committed_date_utc FROM commits")}


async def test_a_span_that_ends_before_it_begins_is_refused(office: Office, project: Project) -> None:
    with pytest.raises(BadUsage, match="開始日は終了日より前"):
        await office.desk.collection(project, [], every=False, since="2026-02-01", until="2026-01-01")
    with pytest.raises(BadUsage, match="no day or time"):
        await office.desk.collection(project, [], every=False, since="soon")


async def test_every_branch_with_whatever_name_is_collected(
    office: Office, tmp_path: Path, gitlab: GitLabDouble
) -> None:
    await office.work()
    made = eventful(tmp_path / "eventful")
    gitlab.host(made.path)
    local = (await office.desk.sync(office.desk.connect("git", str(made.path))))[0]
    served = (await office.connected(gitlab))[0]
    for project in (local, served):
        done = await office.collected(project, every=True)
        assert {name: len(made.logged(f"refs/heads/{name}")) for name in done["new_commits"]} == done["new_commits"]
        assert done["failed"] == {}
    summary = await office.bulk(concurrency=3)
    assert (summary.total_targets, summary.success_count) == (6, 6)
    stored = "SELECT sha, author_name, author_email, committed_date_utc FROM commits WHERE project_id = ?"
    assert set(office.rows(stored, local.project_id)) == set(office.rows(stored, served.project_id))


async def test_a_branch_whose_head_has_not_moved_costs_one_request(
    office: Office, repository: Repository, gitlab: GitLabDouble
) -> None:
    await office.work()
    gitlab.host(repository.path)
    await office.collected((await office.connected(gitlab))[0])
    gitlab.requests.clear()
    await office.bulk()
    assert gitlab.requests == ["/api/v4/projects/100/repository/branches/main"]


async def test_a_failure_on_a_later_page_leaves_nothing_behind(
    office: Office, tmp_path: Path, gitlab: GitLabDouble
) -> None:
    await office.work()
    made = Repository(tmp_path / "many")
    made.many(250)
    gitlab.host(made.path)
    project = (await office.connected(gitlab))[0]
    fault = gitlab.fail("page=3", 403)
    assert list((await office.collected(project))["failed"]) == ["main"]
    assert office.rows("SELECT count(*) FROM commits") == [(0,)]
    fault.times = 0
    assert (await office.collected(project))["new_commits"] == {"main": 250}


async def test_what_is_stored_of_a_branch_can_be_removed(
    office: Office, repository: Repository, project: Project
) -> None:
    repository.git("branch", "twin")
    await office.collected(project, every=True)
    target = office.desk.bulk_runs.targets()[0]
    assert await office.desk.remove_branch(target) == 2
    assert office.rows("SELECT sum(commits) FROM activity") == [(2,)]
    await office.desk.remove_branch(office.desk.bulk_runs.targets()[0])
    assert office.rows("SELECT sum(commits) FROM activity") == [(None,)]
    assert office.desk.bulk_runs.targets() == []


async def test_a_shallow_clone_gives_the_rest_of_its_history_once_it_has_it(
    office: Office, tmp_path: Path, repository: Repository
) -> None:
    repository.many(20)
    clone = tmp_path / "shallow"
    repository.git("clone", "-q", "--depth", "3", f"file://{repository.path}", str(clone))
    await office.work()
    (project,) = await office.desk.sync(office.desk.connect("git", str(clone)))
    assert (await office.collected(project, "main"))["new_commits"] == {"main": 3}
    cut = statistics(office.desk.ledger, Asked())
    assert (cut.missing_stats, office.desk.projects.project(project.project_id).collected_branches) == (1, 1)
    assert (await office.collected(project, "main"))["new_commits"] == {"main": 0}
    repository.git("-C", str(clone), "fetch", "-q", "--unshallow")
    logged = repository.logged("main")
    assert (await office.collected(project, "main"))["new_commits"] == {"main": len(logged) - 3}
    found = statistics(office.desk.ledger, Asked())
    assert (found.missing_stats, found.commits) == (0, len(logged))
    assert (found.additions, found.deletions) == tuple(map(sum, zip(*logged.values(), strict=True)))
    assert office.rows("SELECT head_sha FROM branch_heads") == [(repository.head("main"),)]
