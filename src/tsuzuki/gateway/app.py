"""The application: routes, errors and headers around one open store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Final

from fastapi import FastAPI

from tsuzuki import __version__, settings
from tsuzuki.catalogue import Catalogue
from tsuzuki.gateway import (
    applications,
    contract,
    details,
    history,
    items,
    letters,
    metrics,
    models_of_language,
    pages,
    panel,
    problems,
    runs,
    watch,
    wheels,
    workers,
    workflows,
)
from tsuzuki.gateway.guards import Careful
from tsuzuki.gateway.options import STORE_WAIT, Options, from_environment
from tsuzuki.gateway.permits import Permits
from tsuzuki.gateway.scenes import Scenes
from tsuzuki.gateway.session import Gateway
from tsuzuki.gateway.snapshots import Snapshots
from tsuzuki.gateway.standing import Standings
from tsuzuki.gateway.streams import Streams
from tsuzuki.keyring import Keyring
from tsuzuki.overview import Overview
from tsuzuki.runs import Runs
from tsuzuki.wheels.registry import Registry

ROUTED: Final = (
    *(history, runs, workflows, watch, items, details),
    *(workers, wheels, letters, metrics, panel, models_of_language),
    *(pages, applications),
)
"""The modules with routes, in the order in which a path is looked for among them."""


def create_app(
    open_runs: Runs | None = None,
    *,
    backend: str | None = None,
    data_dir: str | None = None,
    options: Options | None = None,
) -> FastAPI:
    """Makes the application over a store: one that is open, one by its address, or the one of the environment.

    Usable by any ASGI server: `uvicorn tsuzuki.gateway:create_app --factory`.
    """
    chosen = from_environment() if options is None else options
    folder = settings.data_dir(data_dir)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        ours = (
            Runs.open(backend, data_dir=data_dir, timeout=STORE_WAIT) if open_runs is None else nullcontext(open_runs)
        )
        async with ours as opened:
            app.state.gateway = _gateway(opened, chosen, folder)
            yield
            app.state.gateway.streams.close()

    app = FastAPI(
        title=contract.TITLE, version=__version__, lifespan=life, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    problems.install(app)
    for part in ROUTED:
        app.router.routes.extend(part.router.routes)  # as they are: nothing to look through on the way to a route
    pages.install(app)
    applications.install(app)
    contract.describe(app, chosen.api_key_header)
    app.add_middleware(Careful, only_local=chosen.only_local)
    return app


def _gateway(opened: Runs, options: Options, data_dir: Path) -> Gateway:
    overview = Overview(opened)
    standings = Standings(opened)
    snapshots = Snapshots(overview, standings, options.max_snapshot_bytes)
    keyring = Keyring(opened.backend)
    return Gateway(
        runs=opened,
        overview=overview,
        snapshots=snapshots,
        standings=standings,
        streams=Streams(options.max_streams, Permits(keyring)),
        scenes=Scenes(overview, snapshots),
        keyring=keyring,
        catalogue=Catalogue(overview),
        wheels=Registry(opened.backend),
        options=options,
        data_dir=data_dir,
    )
