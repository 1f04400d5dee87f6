"""The command that serves: the gateway alone."""

from dataclasses import replace
from typing import Final

import click

from tsuzuki import logs
from tsuzuki.cli.store import Store, served_store_options, strict_option
from tsuzuki.listening import bound, refuse_open_door


@click.command(short_help="Serve the runs of a store over HTTP.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option("--dashboard-lang", type=click.Choice(["auto", "ja", "en"]), help="The language of the page.")
@click.option("--allow-unauthenticated", is_flag=True, help="Listen to the network although no API key is asked for.")
@strict_option
@served_store_options
def serve(store: Store, *, host: str, port: int, dashboard_lang: str | None, allow_unauthenticated: bool) -> int:
    """Serve the runs of a store over HTTP, without workers; it logs JSON lines on stdout.

    \b
    For example:
      tsuzuki serve --port 8000
      curl -s localhost:8000/runs
    """  # noqa: D301 - click reads \b as: keep these lines
    # Only this command needs a web server: the others start without loading one.
    from tsuzuki.gateway.options import from_environment  # noqa: PLC0415 - an extra
    from tsuzuki.gateway.server import serve_runs  # noqa: PLC0415 - an extra

    options = from_environment()
    options = replace(options, dashboard_lang=dashboard_lang) if dashboard_lang else options
    options = replace(options, only_local=not options.auth and not allow_unauthenticated)
    refuse_open_door(host, auth=options.auth, allowed=allow_unauthenticated)
    logs.configure(logs.GATEWAY)
    with bound(host, port) as listening:  # before anything else: a port that is taken is told in one line
        at = f"http://{_shown(host)}:{listening.getsockname()[1]}"
        alone = not click.get_current_context().find_root().params.get("end_with_parent")
        told = f"serving {store.shown} at {at}"
        serve_runs(store.open, options, listening, lambda: click.echo(told, err=True) if alone else None)
    return 0


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


COMMANDS: Final = (serve,)
