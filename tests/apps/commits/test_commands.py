"""`tsuzuki commits …` as people use it: real processes in a folder."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apps.commits.conftest import consistent
from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository, eventful
from tests.cli.conftest import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    folder = tmp_path / "here"
    folder.mkdir()
    terminal = Terminal(folder)
    yield terminal
    terminal.leave()
    if (folder / ".tsuzuki/commits.db").exists():
        consistent(folder / ".tsuzuki/commits.db")


def test_a_repository_is_collected_and_drawn_offline_out_of_the_box(terminal: Terminal, tmp_path: Path) -> None:
    made = eventful(tmp_path / "eventful")
    told = terminal.tsuzuki("commits", "collect", "--git", str(made.path), "--all")
    shown = dict(line.split()[:2] for line in told.stdout.splitlines()[1:])
    assert shown == {name: str(len(made.logged(name))) for name in ("feature/寿司", "main", "release/1.0#hot")}
    told = terminal.tsuzuki("commits", "stats", "--plot")
    assert "山田 純" in told.stdout
    assert "commits.svg is drawn" in told.stderr
    assert (terminal.folder / "commits.svg").read_text().startswith("<svg")
    added = sum(a for a, _ in made.logged("--branches").values())
    assert terminal.json("commits", "stats")["totals"]["additions"] == added
    assert terminal.tsuzuki("commits", "stats", "--tsv").stdout.startswith("month\tauthor\tcommits")
    assert terminal.json("commits", "stats", "--no-merges")["totals"]["commits"] == len(made.logged("--branches")) - 1
    assert "name it chart.svg" in terminal.tsuzuki("commits", "stats", "--plot", "chart.gif", code=1).stderr
    terminal.tsuzuki("commits", "stats", "--plot", "chart.png")
    assert (terminal.folder / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_bulk_goes_on_tomorrow_and_tells_what_failed(terminal: Terminal, repository: Repository) -> None:
    repository.git("branch", "gone")
    terminal.tsuzuki("commits", "collect", "--git", str(repository.path), "--all", "-q")
    assert terminal.json("commits", "bulk")["success_count"] == 2
    repository.commit("2026-04-01T00:00:00+00:00", {"b": "1"})
    repository.git("branch", "-D", "gone")
    told = terminal.json("commits", "bulk", code=6)
    assert {r["branch_name"]: r["new_commits_count"] for r in told["results"]} == {"gone": None, "main": 1}
    shown = terminal.tsuzuki("commits", "status", code=6)
    assert "no such branch" in shown.stdout
    assert "tsuzuki commits retry" in shown.stderr
    repository.git("branch", "gone")
    again = terminal.json("commits", "retry")
    assert (again["total_targets"], again["success_count"]) == (1, 1)
    assert "失敗した対象が見つかりません" in terminal.tsuzuki("commits", "retry", code=1).stderr
    assert len(terminal.json("commits", "history")) == 3
    assert len(terminal.json("commits", "history", "--forget", "1")) == 3
    other = Repository(terminal.folder / "other")
    terminal.tsuzuki("commits", "connect", str(other.path))
    repository.path.rename(terminal.folder / "away")
    told = terminal.tsuzuki("commits", "projects", "--sync", code=6)
    assert "リポジトリを読み取れません" in told.stderr
    assert "other" in told.stdout, "the others are asked all the same"
    told = terminal.tsuzuki("commits", "projects", "--branches", "1", "--remove-branch", "gone", code=1)
    assert "say --yes" in told.stderr
    told = terminal.tsuzuki("commits", "projects", "--branches", "1", "--remove-branch", "gone", "--yes", code=6)
    assert "リポジトリを読み取れません" in told.stderr
    assert [line.split()[0] for line in told.stdout.splitlines()] == ["branch", "main"], "what is stored is told"
    told = terminal.tsuzuki("commits", "projects", "--branches", "1", "--remove-branch", "gone", code=1)
    assert "nothing is stored" in told.stderr


def test_a_token_is_asked_for_kept_and_never_shown(terminal: Terminal, repository: Repository) -> None:
    with GitLabDouble() as gitlab:
        gitlab.host(repository.path, "team/app")
        told = [terminal.tsuzuki("commits", "connect", gitlab.url, "--token-stdin", stdin=f"{TOKEN}\n")]
        told += [terminal.tsuzuki("commits", "connect"), terminal.tsuzuki("commits", "projects", "--sync")]
        assert gitlab.url in told[1].stdout
        assert "team/app" in told[2].stdout
        told += [terminal.tsuzuki("commits", "collect", "--project", "team/app")]
        told += [terminal.tsuzuki("commits", "projects", "--branches", "1")]
        assert all(TOKEN not in each.stdout + each.stderr for each in told)
        assert "no token on stdin" in terminal.tsuzuki("commits", "connect", gitlab.url, "--token-stdin", code=1).stderr
        assert "not both" in terminal.tsuzuki("commits", "connect", gitlab.url, "--remove", "1", code=1).stderr
        kept = terminal.folder / ".tsuzuki/commits-tokens.json"
        assert len(terminal.json("commits", "connect")) == 1, "nothing was removed"
        assert TOKEN in kept.read_text(), "nothing was forgotten"
        assert oct(kept.stat().st_mode)[-3:] == "600"
        terminal.tsuzuki("commits", "connect", "--remove", "1")
        assert TOKEN not in kept.read_text()
        assert "接続設定がありません" in terminal.tsuzuki("commits", "bulk", code=1).stderr
        assert "main" in terminal.tsuzuki("commits", "projects", "--branches", "1").stdout
        assert "--token-stdin" in terminal.tsuzuki("commits", "connect", gitlab.url, code=1).stderr
        terminal.tsuzuki("commits", "connect", f"{gitlab.url}/", "--token-stdin", stdin=f"{TOKEN}\n")
        assert len(terminal.json("commits", "projects", "--sync")) == 1
        assert terminal.json("commits", "bulk")["success_count"] == 1


def test_a_connection_is_tried_before_it_is_registered(terminal: Terminal, gitlab: GitLabDouble) -> None:
    wrong = terminal.tsuzuki("commits", "connect", gitlab.url, "--token-stdin", stdin="glpat-wrong\n", code=1)
    assert "401" in wrong.stderr
    wrong = terminal.tsuzuki("commits", "connect", f"{gitlab.url}/group", "--token-stdin", stdin=f"{TOKEN}\n", code=1)
    assert "is not GitLab's" in wrong.stderr
    for address in ("gitlab.example.com", "gitlab.example.com/group"):
        wrong = terminal.tsuzuki("commits", "connect", address, code=1)
        assert f"https://{address}" in wrong.stderr
        assert "git is installed" not in wrong.stderr
    assert terminal.json("commits", "connect") == [], "nothing was registered"
    terminal.tsuzuki("commits", "connect", gitlab.url, "--token-stdin", stdin=f"{TOKEN}\n")
    assert len(terminal.json("commits", "connect")) == 1


def test_a_project_without_commits_is_told_as_one(terminal: Terminal, gitlab: GitLabDouble) -> None:
    gitlab.host(Repository(terminal.folder / "empty").path)
    terminal.tsuzuki("commits", "connect", gitlab.url, "--token-stdin", stdin=f"{TOKEN}\n")
    terminal.tsuzuki("commits", "projects", "--sync")
    told = terminal.tsuzuki("commits", "collect", "--project", "1", code=6)
    assert "no commits yet" in told.stdout


def test_ctrl_c_does_not_wait_for_a_limit_of_the_server(
    terminal: Terminal, gitlab: GitLabDouble, repository: Repository
) -> None:
    gitlab.host(repository.path)
    terminal.tsuzuki("commits", "connect", gitlab.url, "--token-stdin", stdin=f"{TOKEN}\n")
    terminal.tsuzuki("commits", "projects", "--sync")
    gitlab.fail("/repository/branches", 429, headers={"Retry-After": "500"})
    terminal.environment["TSUZUKI_GRACE_SECONDS"] = "500"
    process = terminal.start("commits", "collect", "--project", "1")
    terminal.until(lambda: bool(gitlab.asked("/repository/branches")))
    process.send_signal(signal.SIGINT)
    terminal.end(process, code=130)


def test_what_makes_no_sense_is_told_in_a_line(terminal: Terminal) -> None:
    assert "--git PATH" in terminal.tsuzuki("commits", "collect", code=1).stderr
    assert "--branches PROJECT" in terminal.tsuzuki("commits", "projects", "--remove-branch", "x", code=1).stderr
    assert "収集対象が見つかりません" in terminal.tsuzuki("commits", "bulk", code=1).stderr
    assert "no project has the name" in terminal.tsuzuki("commits", "stats", "--project", "x", code=1).stderr
    assert "git リポジトリを読み取れません" in terminal.tsuzuki("commits", "collect", "--git", ".", code=1).stderr
    assert "実行中の一括収集はありません" in terminal.tsuzuki("commits", "cancel", code=1).stderr
    assert terminal.json("commits", "history") == []


def test_this_very_repository_can_be_collected(terminal: Terminal) -> None:
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():  # a tree without its history has nothing to collect
        root = eventful(terminal.folder / "eventful").path
    told = terminal.json("commits", "collect", "--git", os.fspath(root))
    assert sum(told["new_commits"].values()) > 0
    terminal.tsuzuki("commits", "stats", "--plot", "own.svg")
    assert "<rect" in (terminal.folder / "own.svg").read_text()
