"""What a worker can execute just now, and who brings it more: flows, YAML flows, and wheels where it syncs them."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, Final, NamedTuple, Protocol

from tsuzuki.backends import NO_FINGERPRINTS, Backend
from tsuzuki.flowset import FlowSet
from tsuzuki.held import Held
from tsuzuki.lifecycle import Run
from tsuzuki.runner import Compile

logger: Final = logging.getLogger("tsuzuki.worker")


class Goods(NamedTuple):
    """What can be executed: flows by name, and what compiles YAML flows."""

    flows: FlowSet
    workflows: Compile | None = None


class Supply(Protocol):
    """Brings a worker what it can execute, anew whenever that has changed. It never raises."""

    @property
    def digests(self) -> Mapping[str, str]:
        """The digests of the wheels that are installed, by name."""
        ...

    def told(self) -> dict[str, Any]:
        """Gives what others are told of it: `wheel_sync`."""
        ...

    async def look(self, *, idle: bool = True) -> bool:
        """Tells whether there is something to be installed or removed; costs next to nothing where there is not.

        What has failed before is tried again only by a worker that is idle: it is not worth waiting for runs to end.
        """
        ...

    async def renew(self) -> Goods:
        """Installs and removes, while nothing is executed, and gives what can be executed now."""
        ...

    def close(self) -> None:
        """Leaves."""
        ...


class Stock:
    """What a worker can execute, kept up by a supply where it has one."""

    def __init__(self, goods: Goods, supply: Supply | None = None) -> None:
        self.goods, self.supply = goods, supply
        self.renewing = False
        """Whether nothing may begin: what is executed is about to change."""
        self.fingerprints = goods.flows.fingerprints()

    @property
    def flows(self) -> FlowSet:
        """The flows by name."""
        return self.goods.flows

    @property
    def workflows(self) -> Compile | None:
        """What compiles YAML flows."""
        return self.goods.workflows

    @property
    def digests(self) -> Mapping[str, str]:
        """The digests of the wheels it executes with."""
        return NO_FINGERPRINTS if self.supply is None else self.supply.digests

    def executes(self, run: Run) -> bool:
        """Tells whether a run can be executed here."""
        return self.workflows is not None if run.workflow else run.flow in self.flows

    async def changed(self, *, idle: bool = True) -> bool:
        """Tells whether new wheels wait."""
        return self.supply is not None and await self.supply.look(idle=idle)

    async def renew(self) -> None:
        """Takes in what the supply brings."""
        if self.supply is not None:
            self.goods = await self.supply.renew()
            self.fingerprints = self.goods.flows.fingerprints()

    async def begun(self, backend: Backend, tags: tuple[str, ...]) -> dict[str, Any]:
        """Takes in what there is when the worker starts, and gives what is told of it."""
        await self.changed()
        await self.renew()
        return await self.told(backend, tags)

    async def renewed(self, held: Held, stopping: asyncio.Event) -> bool:
        """Takes in new wheels, where there are some, once nothing is under way; tells whether it did."""
        if not await self.changed(idle=not held.running):
            return False
        self.renewing = True
        if held.running:
            logger.info("wheels have changed: taken in once %d runs under way have ended", len(held.running))
        try:
            await held.rest(stopping)
            await _unless(stopping, self.renew())
        finally:
            self.renewing = False
        return True

    async def told(self, backend: Backend, tags: tuple[str, ...]) -> dict[str, Any]:
        """Publishes the flows, and gives what a worker tells of what it can execute."""
        flows = await self.flows.told(backend) if tags else {}
        tasks = () if self.workflows is None else self.workflows.tasks
        told = {"flows": tuple(self.flows), "workflows": self.workflows is not None, "tasks": tasks}
        return {**told, **flows, **self.state()}

    def state(self) -> dict[str, Any]:
        """Gives what a worker tells of its wheels."""
        return {} if self.supply is None else {"wheel_sync": self.supply.told()}

    def close(self) -> None:
        """Leaves."""
        if self.supply is not None:
            self.supply.close()


async def _unless(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Does something to its end, unless the worker is to stop: what is half done then is done anew by the next one."""
    doing, told = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    await asyncio.wait({doing, told}, return_when=asyncio.FIRST_COMPLETED)
    for task in (doing, told):
        task.cancel()
    await asyncio.wait({doing, told})
    if not doing.cancelled():
        doing.result()
