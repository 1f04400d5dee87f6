"""The commands for API keys: create, list, revoke."""

import asyncio
from typing import Final

import click

from tsuzuki.cli import render
from tsuzuki.cli.store import Store, on_runs, store_options
from tsuzuki.errors import BadUsage
from tsuzuki.keyring import Keyring
from tsuzuki.runs import Runs
from tsuzuki.tokens import RIGHTS, KeyRecord

_COLUMNS: Final = ("KEY", "TENANT", "NAME", "RIGHTS", "CREATED", "STATE")


@click.group(short_help="Make, list and revoke API keys.")
def keys() -> None:
    """Make, list and revoke the API keys of a store.

    \b
    For example:
      tsuzuki keys create --tenant lab
      TSUZUKI_HTTP_AUTH=api_key tsuzuki serve
    """  # noqa: D301 - click reads \b as: keep these lines


@keys.command(short_help="Make a key; it is shown once.")
@click.option("--tenant", required=True, help="Whose key it is: runs of other tenants are hidden from it.")
@click.option("--name", default="", help="What it is for.")
@click.option("--right", "rights", multiple=True, type=click.Choice(RIGHTS), help="May do this too; may be repeated.")
@render.json_option
@store_options
def create(store: Store, *, tenant: str, name: str, rights: tuple[str, ...], as_json: bool) -> int:
    """Make a key and show it, this once: only a salted hash of it is kept.

    \b
      tsuzuki keys create --tenant lab --name laptop
      tsuzuki keys create --tenant lab --name releases --right wheels
    """  # noqa: D301 - click reads \b as: keep these lines

    async def made() -> tuple[str, KeyRecord]:
        async with store.open() as runs:
            return await Keyring(runs.backend).create(tenant, name, rights)

    text, record = asyncio.run(made())
    if as_json:
        render.put(
            {"key": text, "id": record.id, "tenant": record.tenant, "name": record.name, "rights": record.rights}
        )
        return 0
    click.echo(text)
    click.echo(f"key {record.id} of tenant {record.tenant}; it is shown this once, keep it safe", err=True)
    return 0


@keys.command("list", short_help="Show the keys.")
@render.json_option
@on_runs
async def list_keys(runs: Runs, *, as_json: bool) -> int:
    """Show the keys of the store; never the keys themselves.

    \b
      tsuzuki keys list
    """  # noqa: D301 - click reads \b as: keep these lines
    records = await Keyring(runs.backend).list()
    if as_json:
        render.put([_shown(record) for record in records])
        return 0
    rows = (
        (r.id, r.tenant, r.name, ",".join(r.rights), render.local(r.created_at), "revoked" if r.revoked_at else "holds")
        for r in records
    )
    for line in render.table(_COLUMNS, rows, frozenset()):
        click.echo(line)
    return 0


@keys.command(short_help="Let a key hold no more.")
@click.argument("key_id", metavar="KEY")
@on_runs
async def revoke(runs: Runs, *, key_id: str) -> int:
    """Let a key hold no more, by its id; every gateway refuses it, and ends what is open with it, within a second.

    \b
      tsuzuki keys revoke 3f9c0a1b2d4e
    """  # noqa: D301 - click reads \b as: keep these lines
    record = await Keyring(runs.backend).revoke(key_id)
    if record is None:
        raise BadUsage(f"there is no key {key_id!r}; `tsuzuki keys list` shows them")
    click.echo(f"key {record.id} of tenant {record.tenant} is revoked")
    return 0


def _shown(record: KeyRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "tenant": record.tenant,
        "name": record.name,
        "rights": record.rights,
        "created_at": record.created_at,
        "revoked_at": record.revoked_at,
    }


COMMANDS: Final = (keys,)
