"""Local git: what the source gives is what git itself says."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apps.commits.repositories import Repository, eventful
from tsuzuki.apps.commits.records import Commit, Span
from tsuzuki.apps.commits.refusals import HeadGone, SourceFailure
from tsuzuki.apps.commits.sources.git import GitSource, LogReader


async def read(path: Path, span: Span) -> list[Commit]:
    return [commit async for page in GitSource(str(path)).commits(".", span) for commit in page]


async def test_its_numbers_are_those_of_git_log(tmp_path: Path) -> None:
    made = eventful(tmp_path / "eventful")
    found = await read(made.path, Span(made.head()))
    assert {c.sha: (c.additions, c.deletions) for c in found} == made.logged()
    assert sum(c.is_merge for c in found) == 1
    assert {c.author_name for c in found} == {"Ada", "Grace Hopper", "山田 純"}


async def test_times_are_utc(tmp_path: Path) -> None:
    made = eventful(tmp_path / "eventful")
    found = await read(made.path, Span(made.head()))
    assert "2026-01-31T15:30:00+00:00" in {c.committed_date_utc for c in found}
    assert all(c.committed_date_utc.endswith("+00:00") for c in found)


async def test_a_time_that_no_calendar_has_does_not_keep_a_branch_from_being_read(tmp_path: Path) -> None:
    made = Repository(tmp_path / "broken")
    made.many(1, start=99_999_999_999_999)
    (commit,) = await read(made.path, Span(made.head("main")))
    assert commit.committed_date_utc == "1970-01-01T00:00:00+00:00"


async def test_branches_may_be_japanese_and_have_slashes(tmp_path: Path) -> None:
    made = eventful(tmp_path / "eventful")
    source = GitSource(str(made.path / "a"))  # a folder inside finds the repository above
    names = [branch.name for branch in await source.branches(".")]
    assert names == ["feature/寿司", "main", "release/1.0#hot"]
    for name in names:
        assert await source.head(".", name) == made.head(f"refs/heads/{name}")
    assert (await source.projects())[0].default_branch == "main"


async def test_ten_thousand_commits_are_read_as_they_come(tmp_path: Path) -> None:
    made = Repository(tmp_path / "large")
    made.many(10_000)
    pages = [page async for page in GitSource(str(made.path)).commits(".", Span(made.head("main")))]
    assert sum(map(len, pages)) == 10_000
    assert len(pages) > 2
    assert sum(c.additions for page in pages for c in page) == sum(a for a, _ in made.logged("main").values())


async def test_a_range_gives_what_is_new(repository: Repository) -> None:
    old = repository.head()
    new = [repository.commit(f"2026-03-0{day}T00:00:00+00:00", {"b": str(day)}) for day in (1, 2)]
    assert {c.sha for c in await read(repository.path, Span(new[-1], old))} == set(new)
    assert await read(repository.path, Span(new[-1], new[-1])) == []


async def test_a_span_of_time_looks_behind_older_commits(repository: Repository) -> None:
    repository.commit("2020-01-01T00:00:00+00:00", {"old": "1"})
    span = Span(repository.head(), None, "2026-02-01T00:00:00+00:00", "2026-02-28T00:00:00+00:00")
    assert [c.committed_date_utc for c in await read(repository.path, span)] == ["2026-02-10T10:00:00+00:00"]


async def test_an_unknown_head_is_gone(repository: Repository) -> None:
    with pytest.raises(HeadGone):
        await read(repository.path, Span(repository.head(), "1" * 40))


async def test_what_is_not_there_is_told(tmp_path: Path, repository: Repository) -> None:
    with pytest.raises(SourceFailure, match=r"no such branch.*nowhere"):
        await GitSource(str(repository.path)).head(".", "nowhere")
    with pytest.raises(SourceFailure, match=r"no such branch.*main~1"):
        await GitSource(str(repository.path)).head(".", "main~1")
    with pytest.raises(SourceFailure, match="no commits yet"):
        await GitSource(str(Repository(tmp_path / "empty").path)).head(".", "main")
    with pytest.raises(SourceFailure, match="リポジトリを読み取れません"):
        await GitSource(str(tmp_path / "nothing")).branches(".")


async def test_a_tag_of_the_same_name_is_not_the_default_branch(repository: Repository) -> None:
    repository.git("tag", "main")
    source = GitSource(str(repository.path))
    (found,) = await source.projects()
    assert found.default_branch == "main"
    assert await source.head(".", found.default_branch) == repository.head("refs/heads/main")


async def test_the_users_configuration_changes_no_figure(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = await read(repository.path, Span(repository.head()))
    settings = "[log]\nshowRoot = false\nshowSignature = true\n[diff]\nrelative = true\nignoreSubmodules = all\n"
    (tmp_path / "config").write_text(settings + "[color]\nui = always\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    assert await read(repository.path, Span(repository.head())) == plain
    assert plain[-1].additions > 0, "the first commit"


@pytest.mark.parametrize(
    "setting",
    [
        "diff.algorithm=histogram", "diff.algorithm=patience", "core.bigFileThreshold=100", "diff.orderFile=/nowhere",
        "diff.renameLimit=1", "diff.renames=false", "diff.indentHeuristic=false", "core.attributesFile=/tmp/none",
        "diff.interHunkContext=9", "diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.submodule=log",
        "diff.wsErrorHighlight=all", "diff.colorMoved=zebra", "log.diffMerges=first-parent", "log.follow=true",
        "diff.dirstat=lines", "diff.suppressBlankEmpty=true", "log.mailmap=false", "diff.statGraphWidth=3",
        "log.excludeDecoration=*", "log.date=relative", "format.notes=true", "core.abbrev=4", "diff.context=0",
    ],
)  # fmt: skip
async def test_no_setting_of_the_repository_changes_a_figure(tmp_path: Path, setting: str) -> None:
    made = eventful(tmp_path / "eventful")
    # Texts about whose differences the algorithms disagree.
    for day, text in enumerate(("}}}dc}cb}ecba{}cabaadda}f}dde}", "ab}e{befdeabb{be{baadda}{{{bde"), start=1):
        made.commit(f"2026-04-0{day}T00:00:00+00:00", {"c": "\n".join(text) + "\n"})
    plain = await read(made.path, Span(made.head()))
    name, _, value = setting.partition("=")
    made.git("config", name, value)
    assert await read(made.path, Span(made.head())) == plain


async def test_bare_repositories_and_worktrees_are_repositories(tmp_path: Path, repository: Repository) -> None:
    repository.git("clone", "-q", "--bare", str(repository.path), str(tmp_path / "bare.git"))
    repository.git("worktree", "add", "-q", "-b", "beside", str(tmp_path / "beside"))
    bare = GitSource(str(tmp_path / "bare.git"))
    assert (await bare.projects())[0].name == "bare"
    assert await bare.head(".", "main") == repository.head("main")
    assert await GitSource(str(tmp_path / "beside")).head(".", "beside") == repository.head("beside")


@pytest.mark.parametrize("variable", ["GIT_DIR", "GIT_WORK_TREE"])
async def test_the_environment_of_another_git_means_nothing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    assert len(await read(repository.path, Span(await GitSource(str(repository.path)).head(".", "main")))) == 2


def hostile(repository: Repository, proof: Path) -> Path:
    """Makes a bare partial clone that lacks a blob, and names a program for everything for which git may ask one."""
    place = repository.path.parent / "hostile.git"
    repository.git("clone", "-q", "--bare", str(repository.path), str(place))
    program = proof.parent / "program"
    program.write_text(f"#!/bin/sh\nid >> {proof}\nexit 1\n")
    program.chmod(0o755)
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": "ssh://nowhere.example/x",
        "core.sshCommand": str(program),
        "core.gitProxy": str(program),
        "core.fsmonitor": str(program),
        "core.pager": str(program),
        "core.askPass": str(program),
        "core.alternateRefsCommand": str(program),
        "credential.helper": str(program),
        "diff.external": str(program),
        "diff.evil.command": str(program),
        "diff.evil.textconv": str(program),
        "gpg.program": str(program),
        "log.showSignature": "true",
        "pager.log": str(program),
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "include.path": str(proof.parent / "included"),
    }.items():
        repository.git("--git-dir", str(place), "config", name, value)
    (proof.parent / "included").write_text(f'[core]\n\tsshCommand = "{program}"\n\thooksPath = {proof.parent}\n')
    (place / "info/attributes").write_text("* diff=evil\n")
    blob = repository.git("rev-parse", "HEAD:a.txt").strip()
    for pack in (place / "objects/pack").glob("*.pack"):
        moved = pack.rename(proof.parent / "all.pack")
        repository.git("--git-dir", str(place), "unpack-objects", "-q", stdin=moved.read_bytes())
    (place / "objects" / blob[:2] / blob[2:]).unlink()
    return place


@pytest.mark.parametrize("url", ["ssh://nowhere.example/x", "ext::{program}", "git://nowhere.example/x", "{local}"])
async def test_a_repository_runs_no_program_that_its_own_configuration_names(
    tmp_path: Path, repository: Repository, url: str
) -> None:
    proof = tmp_path / "proof"
    place = hostile(repository, proof)
    named = url.format(program=tmp_path / "program", local=repository.path)
    repository.git("--git-dir", str(place), "config", "remote.origin.url", named)
    repository.git("--git-dir", str(place), "config", "remote.origin.uploadpack", str(tmp_path / "program"))
    source = GitSource(str(place))
    head = await source.head(".", "main")
    await source.projects()
    await source.branches(".")
    with pytest.raises(SourceFailure, match="cannot be read"):
        await read(place, Span(head))
    assert not proof.exists()


async def test_a_repository_of_another_user_is_refused_as_git_refuses_it(
    tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = repository.head()
    for path in (repository.path, *repository.path.rglob("*")):
        os.chown(path, 65534, 65534)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    with pytest.raises(SourceFailure, match=r"belongs to another user.*safe\.directory"):
        await GitSource(str(repository.path)).head(".", "main")
    with pytest.raises(SourceFailure, match="belongs to another user"):
        await read(repository.path, Span(head))
    (tmp_path / "config").write_text(f"[safe]\n\tdirectory = {repository.path}\n")
    assert len(await read(repository.path, Span(head))) == 2, "the user trusts it"


async def test_no_repository_further_up_takes_the_place_of_a_broken_one(repository: Repository) -> None:
    (repository.path / "inner" / ".git").mkdir(parents=True)
    with pytest.raises(SourceFailure, match="cannot be read"):
        await GitSource(str(repository.path / "inner")).projects()


LOG = b"".join(
    b"@%040d\0%s\0name\0mail\x00%d\0%s" % (n, b"p q" if n == 2 else b"p", 1_700_000_000 + n, files)
    for n, files in enumerate(
        [b"\n3\t1\t@name\x00-\t-\tbin\0", b"\n1\t1\t\0@from\0@to\x002\t0\tx\0", b"", b"\n7\t0\ty\0"]
    )
)


@given(st.lists(st.integers(0, len(LOG)), max_size=6))
def test_the_log_is_read_the_same_in_whatever_pieces(cuts: list[int]) -> None:
    reader, places = LogReader(), [0, *sorted(cuts), len(LOG)]
    found = [commit for a, b in pairwise(places) for commit in reader.feed(LOG[a:b])]
    found += reader.end()
    assert [(c.additions, c.deletions, c.is_merge) for c in found] == [(3, 1, 0), (3, 1, 0), (0, 0, 1), (7, 0, 0)]
