"""Where commits come from: one connection for each place, its token apart from it, and no secret in its address."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.apps.commits.conftest import Office
from tests.apps.commits.gitlab_double import TOKEN, GitLabDouble
from tests.apps.commits.repositories import Repository
from tsuzuki.apps.commits.records import Connection
from tsuzuki.apps.commits.refusals import SourceFailure
from tsuzuki.apps.commits.sources.git import checked_out
from tsuzuki.apps.commits.tokens import KEPT, NONE, SET
from tsuzuki.errors import BadUsage, StoreUnavailable, TsuzukiError


@pytest.mark.parametrize(
    "address",
    ["ftp://x", "http://", "https://u:secret@host", "https://host?private_token=secret", "https://host#secret", "x:y"],
)
def test_an_address_of_a_server_holds_no_secret_and_is_one(office: Office, address: str) -> None:
    with pytest.raises(BadUsage, match=" / ") as refused:
        office.desk.connect("gitlab", address, TOKEN)
    assert "secret" not in str(refused.value)
    assert office.desk.projects.connections() == []


def test_one_place_has_one_connection_however_it_is_spelled(
    office: Office, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(repository.path)
    monkeypatch.chdir(tmp_path)
    for path in (str(repository.path), "link", f"link/../{repository.path.name}"):
        office.desk.connect("git", path)
    for url in ("https://GitLab.example.com/", "HTTPS://gitlab.example.com/api/v4/", " https://gitlab.example.com "):
        office.desk.connect("gitlab", url, TOKEN)
    kept = [(each.kind, each.address) for each in office.desk.projects.connections()]
    assert kept == [("git", str(repository.path.resolve())), ("gitlab", "https://gitlab.example.com")]


async def test_a_working_tree_belongs_to_its_repository(office: Office, repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-b", "beside", str(tmp_path / "tree"))
    inner = tmp_path / "tree/inner"
    inner.mkdir()
    whole = office.desk.connect("git", str(repository.path))
    assert office.desk.connect("git", str(inner)).connection_id == whole.connection_id
    assert [await checked_out(place) for place in (repository.path, inner)] == ["", "beside"]
    repository.git("-C", str(inner), "checkout", "--detach")
    with pytest.raises(SourceFailure, match="none is checked out here"):
        await checked_out(inner)


def test_a_token_stays_until_another_one_or_none_is_asked_for(office: Office) -> None:
    for token, where, kept in ((TOKEN, KEPT, TOKEN), (None, KEPT, TOKEN), ("", NONE, None), (None, NONE, None)):
        connection = office.desk.connect("gitlab", "https://gitlab.example.com", token)
        assert (connection.token_from, office.desk.tokens.of(connection)) == (where, kept)


def test_tokens_that_are_kept_at_once_are_all_kept(office: Office) -> None:
    made = [office.desk.connect("gitlab", f"https://{n}.example.com", "") for n in range(8)]
    together = threading.Barrier(len(made))

    def keep(connection: Connection) -> None:
        together.wait()
        office.desk.tokens.keep(connection, f"t-{connection.connection_id}")

    with ThreadPoolExecutor(len(made)) as threads:
        list(threads.map(keep, made))
    assert [office.desk.tokens.kept(each) for each in made] == [f"t-{each.connection_id}" for each in made]


def test_a_file_of_tokens_that_is_broken_is_not_written_over(office: Office) -> None:
    office.desk.connect("gitlab", "https://one.example.com", TOKEN)
    file = office.folder / "commits-tokens.json"
    file.write_text(broken := file.read_text()[:-1])
    with pytest.raises(StoreUnavailable, match="mend or remove it") as refused:
        office.desk.connect("gitlab", "https://two.example.com", "another")
    assert TOKEN not in str(refused.value)
    assert file.read_text() == broken


@pytest.mark.parametrize("token", ["トークン", "two words", "line\nbreak"])
async def test_what_cannot_be_a_token_is_refused_and_never_sent(
    office: Office, gitlab: GitLabDouble, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadUsage, match="トークンに空白"):
        office.desk.connect("gitlab", gitlab.url, token)
    monkeypatch.setenv("TSUZUKI_GITLAB_URL", f"{gitlab.url}/")
    monkeypatch.setenv("TSUZUKI_GITLAB_TOKEN", token)
    with pytest.raises(TsuzukiError, match="401"):
        await office.desk.sync(office.desk.connect("gitlab", gitlab.url))


async def test_the_token_of_the_environment_goes_to_its_server_alone(
    office: Office, repository: Repository, gitlab: GitLabDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    gitlab.host(repository.path)
    monkeypatch.setenv("TSUZUKI_GITLAB_TOKEN", TOKEN)
    connection = office.desk.connect("gitlab", gitlab.url)
    assert connection.token_from == NONE
    with pytest.raises(TsuzukiError, match="401"):
        await office.desk.sync(connection)
    monkeypatch.setenv("TSUZUKI_GITLAB_URL", gitlab.url)
    connection = office.desk.connect("gitlab", f"{gitlab.url}/api/v4/")
    assert connection.token_from == SET
    assert len(await office.desk.sync(connection)) == 1
    assert not (office.folder / "commits-tokens.json").exists()
