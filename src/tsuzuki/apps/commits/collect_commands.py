"""The commands that connect, list projects and branches, and collect."""

import re
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from tsuzuki import Runs
from tsuzuki.apps.commits import flows
from tsuzuki.apps.commits.desk import Desk
from tsuzuki.apps.commits.projects import StoredBranch
from tsuzuki.apps.commits.records import Connection, Project, Target
from tsuzuki.apps.commits.refusals import NotThere, SourceFailure
from tsuzuki.apps.commits.sources.git import checked_out
from tsuzuki.apps.commits.sources.gitlab import server_address
from tsuzuki.apps.commits.terminal import desk_of, on_desk, print_table
from tsuzuki.apps.terminal import quiet_option
from tsuzuki.cli.here import SOME_FAILED, Progress, start_here, with_progress
from tsuzuki.cli.params import agreed_to_remove
from tsuzuki.cli.render import counted, json_option, local, put
from tsuzuki.cli.store import Store, store_options
from tsuzuki.errors import BadUsage

_HOST: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/.*)?")


@click.command()
@click.argument("address", metavar="[URL|PATH]", required=False)
@click.option("--token-stdin", is_flag=True, help="Read the token from stdin instead of asking for it.")
@click.option("--no-token", is_flag=True, help="Ask for no token: public projects, or TSUZUKI_GITLAB_TOKEN.")
@click.option("--remove", type=int, metavar="NUMBER", help="Remove a connection and its token; commits stay.")
@json_option
@store_options
def connect(
    store: Store, address: str | None, *, token_stdin: bool, no_token: bool, remove: int | None, as_json: bool
) -> None:
    """Register a GitLab server or a local repository; without an address, list what is registered.

    The token is kept in a file that only you can read, and is never shown. With TSUZUKI_GITLAB_TOKEN and
    TSUZUKI_GITLAB_URL in the environment none is asked for.

    \b
      tsuzuki commits connect https://gitlab.example.com
      tsuzuki commits connect path/to/repository
    """  # noqa: D301 - click reads \b as: keep these lines

    if address and remove is not None:
        raise BadUsage("name an address to register it, or --remove NUMBER: not both")

    async def work(desk: Desk) -> list[Connection]:
        if remove is not None:
            desk.disconnect(remove)
        if address and "://" in address:
            token = _token(desk, address, from_stdin=token_stdin, none=no_token)
            await desk.check(address, token)  # nobody wants to find out later
            desk.connect("gitlab", address, token)
        elif address:
            _refuse_host(address)
            desk.connect("git", address)
        return desk.projects.connections()

    _show_connections(on_desk(store, work), as_json=as_json)
    if address:
        click.echo("`tsuzuki commits projects --sync` asks it for its projects", err=True)


def _refuse_host(address: str) -> None:
    """Refuses what is no folder, and looks like a server."""
    if _HOST.fullmatch(address) and not Path(address).exists():
        raise BadUsage(
            f"{address} というフォルダーはありません。サーバーの場合は https://{address} と入力してください / "
            f"there is no folder {address}: if it is a server, write https://{address}"
        )


def _token(desk: Desk, address: str, *, from_stdin: bool, none: bool) -> str:
    server = server_address(address)  # what is refused is refused before anybody types a token
    if from_stdin:
        if token := sys.stdin.readline().strip():
            return token
        raise BadUsage("there is no token on stdin: nothing was changed; --no-token registers without one")
    if none or desk.tokens.source_of(None, server) == "environment":
        return ""
    if not sys.stdin.isatty():
        raise BadUsage(
            "there is no terminal to ask for a token: say --token-stdin or --no-token, or set TSUZUKI_GITLAB_TOKEN "
            "and TSUZUKI_GITLAB_URL"
        )
    return str(click.prompt("token (read_api; empty for none)", default="", hide_input=True, show_default=False))


def _show_connections(found: list[Connection], *, as_json: bool) -> None:
    if as_json:
        return put([asdict(connection) for connection in found])
    rows = [(str(each.connection_id), each.kind, each.address, each.token_from) for each in found]
    return print_table(("number", "kind", "address", "token"), rows, "no connection yet: tsuzuki commits connect URL")


@click.command()
@click.option("--connection", type=int, metavar="NUMBER", help="Only those of a connection.")
@click.option("--sync", is_flag=True, help="Ask the sources for their projects first.")
@click.option("--branches", "of", metavar="PROJECT", help="List the branches of a project instead.")
@click.option("--remove-branch", metavar="NAME", help="With --branches: remove what is stored of a branch.")
@click.option("--yes", is_flag=True, help="Do not ask before removing.")
@json_option
@store_options
def projects(
    store: Store,
    connection: int | None,
    of: str | None,
    remove_branch: str | None,
    *,
    sync: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """List the projects that are known, or the branches of one.

    \b
      tsuzuki commits projects --sync
      tsuzuki commits projects --branches 1
    """  # noqa: D301 - click reads \b as: keep these lines
    if of is not None:
        return on_desk(store, lambda desk: _branches(desk, of, remove_branch, yes=yes, as_json=as_json))
    if remove_branch is not None:
        raise BadUsage(f"say of which project: --branches PROJECT --remove-branch {remove_branch}")

    async def work(desk: Desk) -> tuple[list[Project], list[str]]:
        known = desk.projects.connections() if connection is None else [desk.projects.connection(connection)]
        wrong = []
        for each in known if sync else ():
            try:
                await desk.sync(each)
            except SourceFailure as failure:  # the other connections can be asked all the same
                wrong.append(f"error: {each.address}: {failure} [{failure.error_id}]")
        return desk.projects.projects(connection), wrong

    found, wrong = on_desk(store, work)
    for line in wrong:
        click.echo(line, err=True)
    if as_json:
        put([asdict(project) for project in found])
        return SOME_FAILED if wrong else 0
    rows = [(str(p.project_id), p.name, p.default_branch, str(p.collected_branches)) for p in found]
    nothing = "no project yet: tsuzuki commits projects --sync" if not wrong else "no project yet"
    print_table(("number", "name", "default", "collected"), rows, nothing)
    return SOME_FAILED if wrong else 0


async def _branches(desk: Desk, of: str, remove: str | None, *, yes: bool, as_json: bool) -> int:
    project = desk.projects.find(of)
    if remove is not None:
        target = Target(project.project_id, remove)
        if not (stored_commits := desk.projects.stored(target)):
            raise NotThere(f"nothing is stored of a branch {remove!r} of {project.name}")
        if not yes and not agreed_to_remove(f"{counted(stored_commits, 'stored commit')} of {remove}"):
            return 1
        removed = await desk.remove_branch(target)
        click.echo(f"{counted(removed, 'commit')} of {remove} removed", err=True)
    stored = {branch.branch_name: branch for branch in desk.projects.branches(project.project_id)}
    there, code = list[str](), 0
    try:
        there = [branch.name for branch in await desk.branches(project)]
    except SourceFailure as failure:  # what is stored can be told, and removed, all the same
        click.echo(f"error: {failure} [{failure.error_id}]", err=True)
        code = SOME_FAILED
    names = [*there, *(name for name in stored if name not in there)]
    found = [stored.get(name) or StoredBranch(name, 0, "") for name in names]
    if as_json:
        put([{"name": each.branch_name, "commits": each.commits, "last": each.last_collect_time,
              "gone": each.gone_at_utc} for each in found])  # fmt: skip
        return code
    rows = [
        (each.branch_name, f"{each.commits:,}" if each.commits else "-", local(each.last_collect_time or None),
         "gone" if each.gone_at_utc else "")
        for each in found
    ]  # fmt: skip
    print_table(("branch", "commits", "newest", "source"), rows, "no branches")
    return code


@click.command()
@click.option("--git", "path", metavar="PATH", help="A local repository, or a folder in one.")
@click.option("--project", metavar="PROJECT", help="A project by its number or name; see `projects`.")
@click.option("--branch", "branches", multiple=True, metavar="NAME", help="A branch; may be repeated.")
@click.option("--all", "every", is_flag=True, help="Every branch.")
@click.option("--since", default="", metavar="DAY", help="Only commits from that day or time on (UTC).")
@click.option("--until", default="", metavar="DAY", help="Only commits until that day or time.")
@click.option("--concurrency", default=1, show_default=True, type=click.IntRange(1, 64), help="Branches at a time.")
@quiet_option
@json_option
@store_options
def collect(
    store: Store,
    path: str | None,
    project: str | None,
    branches: tuple[str, ...],
    *,
    every: bool,
    since: str,
    until: str,
    concurrency: int,
    quiet: bool,
    as_json: bool,
) -> int:
    """Collect branches of a project for the first time, or what is new of them; the default branch unless one is named.

    With --since or --until only that span, also where it is older than what is stored.

    \b
      tsuzuki commits collect --git .
      tsuzuki commits collect --project group/app --all
    """  # noqa: D301 - click reads \b as: keep these lines
    if (path is None) == (project is None):
        either = "one of --git PATH and --project PROJECT (see `tsuzuki commits projects`)"
        raise BadUsage(f"say what to collect from: {either}{', not both' if path is not None else ''}")

    async def work(runs: Runs, progress: Progress) -> dict[str, Any]:
        desk = desk_of(runs)
        found = desk.projects.find(project) if project else (await desk.sync(desk.connect("git", path or ".")))[0]
        named = list(branches)
        if path and not named and not every and (here := await checked_out(Path(path))):
            named = [here]
        params = await desk.collection(found, named, every=every, since=since, until=until)
        ended = await start_here(runs, flows.collect_project, {**params, "concurrency": concurrency}, progress)
        return {"project": found.name, **ended.result}

    told = with_progress(store, work, quiet=quiet or as_json)
    if as_json:
        put(told)
    else:
        rows = [(branch, f"{new:,}", "") for branch, new in told["new_commits"].items()]
        rows += [(branch, "-", why) for branch, why in told["failed"].items()]
        print_table(("branch", "new", "error"), rows, "no branches")
        click.echo(f"{told['project']}: {counted(sum(told['new_commits'].values()), 'new commit')}", err=True)
    return SOME_FAILED if told["failed"] else 0
