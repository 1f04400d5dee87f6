"""The flows that a worker can execute: those it was given, and what a resolver finds by name."""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from tsuzuki import options
from tsuzuki.backends import Backend
from tsuzuki.backends.registry import PUBLISHED
from tsuzuki.errors import BadUsage, StoreError
from tsuzuki.flow import Flow

logger: Final = logging.getLogger("tsuzuki.worker")

ENTRY_POINTS: Final = "tsuzuki.flows"
"""The group of entry points by which an installed package offers its flows."""

Resolver: TypeAlias = Callable[[str], Flow[..., Any]]
"""Finds a flow by its name; raises KeyError where there is none."""


class FlowSet(Mapping[str, Flow[..., Any]]):
    """Flows by name; one with a resolver may know any name."""

    def __init__(self, flows: Iterable[Flow[..., Any]] = (), resolver: Resolver | None = None) -> None:
        self._resolver = resolver
        self._bodies: dict[str, bytes] = {}
        self._told = False
        self._known: dict[str, Flow[..., Any]] = {}
        for flow in options.instances("Worker(flows=…)", flows, Flow, "flows, functions under @flow"):
            if self._known.setdefault(flow.name, flow) is not flow:
                raise BadUsage(f"two flows are called {flow.name!r}: give one of them another name, @flow(name=…)")

    def __getitem__(self, name: str) -> Flow[..., Any]:
        if name not in self._known and self._resolver is not None:
            return _resolved(self._resolver, name)
        return self._known[name]

    def find(self, name: str) -> Flow[..., Any] | None:
        """Gives a flow by name, or None; what `get` does, in a third of the time."""
        known = self._known.get(name)
        return known if known is not None or self._resolver is None else self.get(name)

    def __contains__(self, name: object) -> bool:
        """Whether a run of that flow is ours to take; a resolver is asked only when it has been taken."""
        return self._resolver is not None or name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def resolves(self) -> bool:
        """Whether a resolver may know any name."""
        return self._resolver is not None

    @property
    def claimable(self) -> Collection[str] | None:
        """The names to claim by; None: any."""
        return None if self._resolver is not None else self._known.keys()

    def fingerprints(self) -> dict[str, str]:
        """Gives what the code of each flow is."""
        return {name: flow.fingerprint for name, flow in self._known.items()}

    async def publish(self, backend: Backend) -> None:
        """Tells others what these flows are, as records of the store; what is told already is left alone."""
        self._bodies = self._bodies or {
            name: msgspec.json.encode(published(flow)) for name, flow in self._known.items()
        }
        if self._told:
            return
        try:
            for name, body in self._bodies.items():
                if await backend.record(PUBLISHED, name) != body:
                    await backend.put_record(PUBLISHED, name, body)
            self._told = True
        except StoreError as error:
            logger.warning("cannot publish the flows just now: %s", error)

    async def told(self, backend: Backend) -> dict[str, Any]:
        """Publishes these flows, and gives what a worker tells of them: so that others see when workers differ."""
        await self.publish(backend)
        return {"marks": tuple(mark_of(body) for body in self._bodies.values()), "resolves": self.resolves}


def mark_of(body: bytes) -> str:
    """Gives by what a published flow is known."""
    return hashlib.sha256(body).hexdigest()[:12]


def published(flow: Flow[..., Any]) -> dict[str, Any]:
    """Gives what others may know of a flow."""
    return {
        "name": flow.name,
        "doc": (flow.__doc__ or "").strip(),
        "params": _schema(flow),
        "tag": flow.tag,
        "key": flow.key,
        "fingerprint": flow.fingerprint,
        "module": flow.function.__module__,
    }


def _schema(flow: Flow[..., Any]) -> dict[str, Any] | None:
    try:
        return flow.params.schema
    except Exception:  # noqa: BLE001 - types of users that have no JSON schema: the flow runs all the same
        return None


def _resolved(resolver: Resolver, name: str) -> Flow[..., Any]:
    """Asks the resolver; what else it raises than KeyError becomes the failure of the run."""
    try:
        found: object = resolver(name)
    except KeyError:
        raise
    except Exception as error:  # noqa: BLE001 - user code: it fails its run, not the worker
        return _failing(name, error)
    if isinstance(found, Flow):
        return found
    return _failing(name, BadUsage(f"the flow resolver gave {found!r} for {name!r}, which is not a flow"))


def _failing(name: str, error: Exception) -> Flow[..., Any]:
    async def fail(**params: Any) -> None:
        del params
        raise error

    return Flow(fail, name=name)
