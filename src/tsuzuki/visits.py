"""What a route of an application gets of whoever asks: `visit: Annotated[Visit, Depends(visit)]`."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import Response

from tsuzuki.flow import Flow
from tsuzuki.gateway.session import InSession, Session
from tsuzuki.lifecycle import Run
from tsuzuki.runs import Runs


@dataclass(frozen=True, slots=True)
class Visit:
    """One request to an application: the runs of the store, who asks, and where the application keeps its files."""

    runs: Runs
    """All runs of the store: `run` and `submit` keep tenants apart, these do not."""
    tenant: str
    """The tenant that the caller's key belongs to; empty where no keys are asked for."""
    api_key: str
    """The id of that key, never the key itself; empty where no keys are asked for."""
    data_dir: Path
    _session: Session

    async def run(self, reference: str) -> Run:
        """Finds a run by its id or number; one of another tenant is not there."""
        return await self._session.run(reference)

    async def submit(self, flow: Flow[..., Any] | str, params: dict[str, Any] | None = None, **options: Any) -> Run:
        """Accepts a run that belongs to the caller's tenant; the options are those of `Runs.submit`."""
        said = {"source": "http", "tenant": self.tenant, "api_key": self.api_key}
        return await self.runs.submit(flow, params, **(options | said))

    def stream(self, frames: AsyncGenerator[bytes, None]) -> Response:
        """Gives an answer that stays open and sends server-sent events as they come.

        It counts among the gateway's open streams, and ends when the frames, the client or the gateway do.
        """
        return self._session.gateway.streams.answer(frames)


async def visit(session: InSession) -> Visit:
    """Gives the visit of a request; there is none without a key where keys are asked for."""
    return Visit(session.runs, session.tenant or "", session.key_id, session.gateway.data_dir, session)
