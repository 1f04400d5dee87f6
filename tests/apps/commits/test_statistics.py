"""Statistics: each commit once, by month and author, as a table, as text for others, and as a picture."""

import csv
import io
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsuzuki.apps.commits.gathering import gathering
from tsuzuki.apps.commits.ledger import Ledger
from tsuzuki.apps.commits.plot import drawn, nice, short, wide
from tsuzuki.apps.commits.projects import Projects
from tsuzuki.apps.commits.records import Commit, FoundProject, Target
from tsuzuki.apps.commits.statistics import Asked, Row, Statistics, author_names, closely, statistics
from tsuzuki.apps.commits.tables import plain, separated
from tsuzuki.errors import BadUsage


def commit(sha: str, month: str, who: str = "Ada", **how: object) -> Commit:
    made = Commit(sha, who, f"{who}@x".lower(), f"{month}-01T00:00:00+00:00", 10, 4, 0, 1)
    return made._replace(**how)  # type: ignore[arg-type] # fields by name


def settle(ledger: Ledger, target: Target, *commits: Commit) -> None:
    with gathering(ledger, target, "", bulk=False) as gathered:
        gathered.add(commits)
        gathered.settle(None)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return made(tmp_path)


def made(folder: Path) -> Ledger:
    ledger = Ledger(folder / "commits.db")
    projects = Projects(ledger)
    found = [FoundProject("1", "team/one", "main"), FoundProject("2", "team/two", "main")]
    projects.sync(projects.connect("gitlab", "http://gitlab", "none"), found)
    return ledger


def rows(ledger: Ledger, asked: Asked | None = None) -> list[tuple[object, ...]]:
    return [(r.month, r.author, r.commits, r.additions, r.deletions) for r in statistics(ledger, asked or Asked()).rows]


def test_a_commit_in_many_branches_counts_once_for_a_project(ledger: Ledger) -> None:
    for name in ("main", "a", "b"):
        settle(ledger, Target(1, name), commit("1", "2026-01"), commit("2", "2026-02", "Grace"))
    settle(ledger, Target(2, "main"), commit("1", "2026-01"))
    assert rows(ledger) == [("2026-01", "Ada", 2, 20, 8), ("2026-02", "Grace", 1, 10, 4)]
    assert rows(ledger, Asked(1)) == [("2026-01", "Ada", 1, 10, 4), ("2026-02", "Grace", 1, 10, 4)]
    assert rows(ledger, Asked(1, "a")) == rows(ledger, Asked(1))


def test_merges_are_left_out_on_request_and_missing_figures_counted(ledger: Ledger) -> None:
    settle(
        ledger,
        Target(1, "main"),
        commit("1", "2026-01"),
        commit("2", "2026-01", is_merge=1),
        commit("3", "2026-01", additions=0, deletions=0, has_stats=0),
    )
    assert rows(ledger) == [("2026-01", "Ada", 3, 20, 8)]
    assert rows(ledger, Asked(merges=False)) == [("2026-01", "Ada", 2, 10, 4)]
    assert rows(ledger, Asked(1, "main", merges=False)) == [("2026-01", "Ada", 2, 10, 4)]
    assert statistics(ledger, Asked()).missing_stats == 1


def test_authors_are_addresses_and_names_are_shown(ledger: Ledger) -> None:
    settle(
        ledger,
        Target(1, "main"),
        commit("1", "2026-01", "Ada"),
        commit("2", "2026-02", "Ada Lovelace", author_email="ADA@x"),
        commit("3", "2026-01", "Jun", author_email="one@x"),
        commit("4", "2026-01", "Jun", author_email="two@x"),
        commit("5", "2026-01", "Nobody", author_email=""),
    )
    assert rows(ledger) == [
        ("2026-01", "Ada Lovelace", 1, 10, 4),
        ("2026-01", "Jun", 1, 10, 4),
        ("2026-01", "Jun (2)", 1, 10, 4),
        ("2026-01", "Nobody", 1, 10, 4),
        ("2026-02", "Ada Lovelace", 1, 10, 4),
    ]
    assert author_names(ledger) == ["Ada Lovelace", "Jun", "Nobody"]
    assert "@" not in str(plain(statistics(ledger, Asked())))


def test_no_name_shows_an_address_and_every_name_can_be_filtered_by(ledger: Ledger) -> None:
    settle(
        ledger,
        Target(1, "main"),
        commit("1", "2026-01", "ada@example.com", author_email="ada@example.com"),
        commit("2", "2026-02", "Jun <jun@example.com>", author_email="jun@example.com"),
        commit("3", "2026-03", "\x1b\u202eÉmile\x07", author_email="e@x"),
        commit("4", "2026-04", "", author_email="n@x"),
        commit("5", "2026-05", "ada", author_email="other@x"),
    )
    assert [r[1] for r in rows(ledger)] == ["ada", "Jun <jun>", "Émile", "(no name)", "ada (2)"]
    assert author_names(ledger) == ["(no name)", "Jun <jun>", "ada", "Émile"]
    asked = {"Ada": ["2026-01", "2026-05"], "ADA (2)": ["2026-05"], "ÉMILE": ["2026-03"], "(no name)": ["2026-04"]}
    for name, months in asked.items():
        assert [r[0] for r in rows(ledger, Asked(authors=(name,)))] == months
        assert [r[0] for r in rows(ledger, Asked(1, "main", authors=(name,)))] == months
    assert "example.com" not in drawn(closely(ledger, Asked(), statistics(ledger, Asked())), "")


def test_a_filter_takes_authors_and_months(ledger: Ledger) -> None:
    settle(ledger, Target(1, "main"), *[commit(str(n), f"2026-0{n}", "Ada" if n % 2 else "Grace") for n in range(1, 7)])
    assert [r[0] for r in rows(ledger, Asked(authors=("ADA",)))] == ["2026-01", "2026-03", "2026-05"]
    assert [r[0] for r in rows(ledger, Asked(since="2026-02", until="2026-03"))] == ["2026-02", "2026-03"]
    assert rows(ledger, Asked(authors=("nobody",))) == []
    for wrong in ("2026", "2026-13", "26-01", "soon"):
        with pytest.raises(BadUsage, match="no month"):
            Asked(since=wrong)
    with pytest.raises(BadUsage):
        Asked(None, "main")


def test_text_for_other_programs_has_no_formulas(ledger: Ledger) -> None:
    settle(ledger, Target(1, "main"), commit("1", "2026-01", '=cmd("x")'), commit("2", "2026-01", 'a,"b"\tc'))
    for separator in (",", "\t"):
        head, *found = csv.reader(io.StringIO(separated(statistics(ledger, Asked()), separator)), delimiter=separator)
        assert head == ["month", "author", "commits", "additions", "deletions", "changes", "missing_stats"]
        assert [line[1] for line in found] == ['\'=cmd("x")', 'a,"b"\tc']
    assert plain(statistics(ledger, Asked()))["totals"] == {
        "commits": 2, "additions": 20, "deletions": 8, "changes": 28, "missing_stats": 0,
    }  # fmt: skip


def test_months_without_commits_are_there(ledger: Ledger) -> None:
    settle(ledger, Target(1, "main"), commit("1", "2025-11"), commit("2", "2026-02"))
    assert statistics(ledger, Asked()).months == ["2025-11", "2025-12", "2026-01", "2026-02"]
    settle(ledger, Target(1, "main"), commit("3", "9999-12"))
    assert statistics(ledger, Asked()).months == ["2025-11", "2026-02", "9999-12"], "a clock was wrong"


def test_a_picture_is_whole_and_names_nobody_wrongly(ledger: Ledger) -> None:
    who = [f"<Author & {n}>" for n in range(12)]
    settle(ledger, Target(1, "main"), *[commit(str(n), f"2026-{n % 12 + 1:02d}", who[n]) for n in range(12)])
    picture = ET.fromstring(drawn(statistics(ledger, Asked()), 'a "title" & more'))  # noqa: S314 - our own
    titles = [title.text or "" for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 24
    assert sum("others" in text for text in titles) == 8
    assert any("<Author & 0>" in text for text in titles)
    words = [text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert sum(word.startswith("<Author") for word in words) == 8, "everybody who is drawn is named"
    assert "others" in words
    assert ET.fromstring(drawn(Statistics([]), "nothing")) is not None  # noqa: S314 - our own


def test_labels_of_a_picture_never_touch_each_other(ledger: Ledger) -> None:
    hours = [commit(str(n), "2026-01", committed_date_utc=f"2026-01-01T{n:02d}:00:00+00:00") for n in range(13)]
    settle(ledger, Target(1, "main"), *hours)
    found = closely(ledger, Asked(), statistics(ledger, Asked()))
    labels = re.findall(r'x="([\d.]+)"[^>]*text-anchor="middle">([^<]+)<', drawn(found, ""))
    places = [(float(at) - wide(text) / 2, float(at) + wide(text) / 2) for at, text in labels]
    assert len(places) > 3
    assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(places))


def test_a_picture_of_a_few_days_looks_closer(ledger: Ledger) -> None:
    days = [commit(str(n), "2026-01", committed_date_utc=f"2026-01-{n:02d}T00:00:00+00:00") for n in (1, 9)]
    settle(ledger, Target(1, "main"), *days)
    found = statistics(ledger, Asked(1))
    assert len(closely(ledger, Asked(1), found).periods) == 9
    assert "01-09" in drawn(closely(ledger, Asked(1), found), "days")
    settle(
        ledger,
        Target(2, "main"),
        *[c._replace(committed_date_utc=f"2026-01-01T0{n}:00:00+00:00") for n, c in enumerate(days)],
    )
    assert closely(ledger, Asked(2), statistics(ledger, Asked(2))).periods == ["2026-01-01T00", "2026-01-01T01"]


@given(st.floats(1, 1e9))
def test_lines_of_a_picture_are_few_and_round(highest: float) -> None:
    assert 1 <= highest / nice(highest) <= 6 or nice(highest) == 1
    assert len(short(nice(highest))) <= 5


AUTHORS = st.sampled_from(["Ada", "Grace", "純"])
FOUND = st.tuples(st.integers(1, 2), st.sampled_from("ab"), st.integers(0, 9), AUTHORS, st.integers(1, 3))


@settings(max_examples=25, deadline=None)
@given(st.lists(FOUND, max_size=25), st.lists(st.tuples(st.integers(1, 2), st.sampled_from("ab")), max_size=3))
def test_the_sums_are_those_of_the_commits_whatever_comes_and_goes(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[int, str, int, str, int]], gone: list[tuple[int, str]]
) -> None:
    ledger = made(tmp_path_factory.mktemp("sums"))
    for project, branch, number, who, month in _same(found):
        settle(ledger, Target(project, branch), commit(str(number), f"2026-0{month}", who))
    for project, branch in gone:
        Projects(ledger).remove_branch(Target(project, branch))
    kept = {(p, n, w, m) for p, b, n, w, m in _same(found) if (p, b) not in gone}
    expected: dict[tuple[str, str], int] = {}
    for _, _, who, month in kept:
        key = (f"2026-0{month}", who)
        expected[key] = expected.get(key, 0) + 1
    assert {(r.month, r.author): r.commits for r in statistics(ledger, Asked()).rows} == expected


def _same(found: list[tuple[int, str, int, str, int]]) -> list[tuple[int, str, int, str, int]]:
    """A commit is the same in every branch: its author and month are those it was first found with."""
    first = {(p, n): (w, m) for p, _, n, w, m in reversed(found)}
    return [(p, b, n, *first[p, n]) for p, b, n, _, _ in found]


def test_a_row_knows_its_changes() -> None:
    assert Row("2026-01", "Ada", 1, 3, 4, 0).changes == 7
