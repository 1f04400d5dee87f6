"""Keeps a worker's wheels as the store has them: looks cheaply, installs only what changed, never raises."""

import asyncio
import hashlib
import logging
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from packaging.tags import Tag, sys_tags

from tsuzuki.backends import Backend
from tsuzuki.backends.shelf import Wheel
from tsuzuki.errors import StoreError, TsuzukiError
from tsuzuki.supply import Goods
from tsuzuki.wheelerrors import WheelSyncFailed
from tsuzuki.wheels import checking, resolving
from tsuzuki.wheels.manifest import DEPENDENCIES, Installed, Place, installed
from tsuzuki.wheels.modules import Modules
from tsuzuki.wheels.naming import OURSELVES, Selection, select
from tsuzuki.wheels.unpacking import unpack

logger: Final = logging.getLogger("tsuzuki.worker")

LONGEST_WAIT: Final = 300.0
"""What fails again and again is tried again at least so often (seconds)."""
AWAY: Final = 1.0
"""Wheels that could not be listed are looked at again after so long (seconds)."""
_FAULTS: Final = (TsuzukiError, OSError, TimeoutError)
Load = Callable[[], tuple[Goods, Sequence[str]]]
"""Loads what can be executed; tells what could not be."""


class WheelSync:
    """The wheels of one worker."""

    def __init__(
        self,
        backend: Backend,
        tags: Sequence[str],
        load: Load,
        *,
        folder: Path,
        interval: float = 10.0,
        timeout: float = 180.0,
        modules: Modules | None = None,
    ) -> None:
        self._wheels, self._clock, self._tags, self._load = backend.wheels, backend.clock, tuple(tags), load
        self._interval, self._timeout = interval, timeout
        self._modules = modules or Modules()
        self._place = Place(folder)
        self._here = self._place.read()
        self._chosen = Selection((), ())
        self._news: str | None = None
        self._next = self._retry = self._looked_at = 0.0
        self._failing: dict[str, str] = {}
        self._away = False
        self._tries = 0
        self._unloadable: Sequence[str] = ()
        self._goods: Goods | None = None
        self._fresh = True
        """Whether nothing was loaded yet, or the wheels could not be listed then."""
        self._state: dict[str, Any] = {"enabled": True, "last_result": "idle"}

    @property
    def digests(self) -> Mapping[str, str]:
        return {each.wheel_name: each.sha256_hex for each in self._here.values()}

    def told(self) -> dict[str, Any]:
        return {**self._state, "installed_wheels": sorted(self._here)}

    def close(self) -> None:
        self._modules.switch([])
        self._place.close()

    @cached_property
    def _fits(self) -> frozenset[Tag]:
        return frozenset(sys_tags())

    # Looking

    async def look(self, *, idle: bool = True) -> bool:
        now, looked_at = self._clock.monotonic(), self._clock.now()
        if self._away and now < self._next:
            return False
        try:
            news = await self._wheels.news()
            if news == self._news and now < self._next and not self._fresh:
                return False
            kept = await self._wheels.all()
        except StoreError as error:
            self._next, self._looked_at, self._away = now + min(self._interval, AWAY), looked_at, True
            self._fail([f"the wheels cannot be listed: {error}"])
            return False
        self._news, self._next, self._looked_at, self._away = news, now + self._interval, looked_at, False
        own = {wheel.package for wheel in kept if self._modules.runs_on(wheel.package)} | {OURSELVES}
        python = ".".join(map(str, sys.version_info[:3]))
        chosen = select(kept, self._tags, self._fits, python, own)
        if chosen.incompatible and chosen.incompatible != self._chosen.incompatible:
            logger.warning("wheels that this worker cannot use are left out: %s", ", ".join(chosen.incompatible))
        self._chosen = chosen
        if self._fresh or self._differs(again=idle and now >= self._retry):
            return True
        if self._failing or self._unloadable:
            self._state["last_attempt_at"] = looked_at  # nothing new: what failed is tried again in a while
        else:
            self._succeeded()
        return False

    def _differs(self, *, again: bool) -> bool:
        """Tells whether something is to be done; what has failed counts only if it is to be tried again."""
        wanted = {wheel.nuid for wheel in self._chosen.chosen}
        here = {each.nuid for each in self._here.values()}
        failing = set() if again else set(self._failing)
        kept_instead = {each.nuid for each in self._here.values() if self._stands_in(each)}
        return bool(wanted - here - failing or here - wanted - kept_instead)

    def _stands_in(self, each: Installed) -> bool:
        """Tells whether something installed is there in the place of a newer version that failed."""
        return any(w.package == each.package_name and w.nuid in self._failing for w in self._chosen.chosen)

    # Installing

    async def renew(self) -> Goods:
        before, failed, come = self._here, dict[str, str](), dict[str, Installed]()
        if self._news is not None:  # otherwise nobody knows what there should be: what is here stays
            wanted = {wheel.name: wheel for wheel in self._chosen.chosen}
            fresh = {n: w for n, w in wanted.items() if n not in before or before[n].nuid != w.nuid}
            try:
                async with asyncio.timeout(self._timeout):
                    await self._install(fresh, come, failed)
            except TimeoutError:
                late = f"it took longer than {self._timeout:g} s"
                failed |= {w.nuid: f"{name}: {late}" for name, w in fresh.items() if name not in come}
            await self._drop_unimportable(come, failed)
            self._place_all(self._after(come), failed)
        self._modules.switch(self._place.paths(self._here))
        self._changed(sorted(come.keys() & self._here.keys()), sorted(before.keys() - self._here.keys()))
        return self._loaded(failed)

    def _after(self, come: Mapping[str, Installed]) -> dict[str, Installed]:
        """Gives what is installed now: what was chosen, and where that failed the version from before."""
        after: dict[str, Installed] = {}
        for wheel in self._chosen.chosen:
            same = self._here.get(wheel.name)
            there = come.get(wheel.name) or (same if same is not None and same.nuid == wheel.nuid else None)
            there = there or next((e for e in self._here.values() if e.package_name == wheel.package), None)
            if there is not None:
                after[there.wheel_name] = there
        return after

    async def _install(self, fresh: Mapping[str, Wheel], come: dict[str, Installed], failed: dict[str, str]) -> None:
        """Unpacks all first, since they may need each other; then looks what each of them needs."""
        requires: dict[str, tuple[str, ...]] = {}
        unpacked: dict[str, Installed] = {}
        for name, wheel in fresh.items():
            try:
                unpacked[name], requires[name] = await self._unpack(wheel)
            except _FAULTS as error:
                failed[wheel.nuid] = _told(name, error)
        coming = {each.package_name for each in unpacked.values()}
        stay = {name: each for name, each in self._after({}).items() if each.package_name not in coming}
        here = stay | unpacked
        paths = [*self._place.paths(here), *self._modules.elsewhere]
        needs: dict[str, list[str]] = {}
        for name in unpacked:
            try:
                needs[name] = await asyncio.to_thread(resolving.missing, requires[name], paths)
            except _FAULTS as error:
                failed[fresh[name].nuid] = _told(name, error)
        for name, needed in sorted(needs.items(), key=lambda each: (bool(each[1]), each[0])):
            try:
                if needed:
                    target = self._place.folder / unpacked[name].folder / DEPENDENCIES
                    await resolving.provide(needed, self._place.paths(here), target)
                come[name] = unpacked[name]
            except _FAULTS as error:
                failed[fresh[name].nuid] = _told(name, error)

    async def _drop_unimportable(self, come: dict[str, Installed], failed: dict[str, str]) -> None:
        """Leave out what cannot be imported, or breaks what is here, before it takes the place of anything."""
        while come:
            culprits: dict[str, str] = {}
            try:
                async with asyncio.timeout(self._timeout):
                    broken = await self._find_unimportable(self._after(come))
                    culprits = {name: broken[name] for name in come if name in broken}
                    if broken and not culprits:
                        culprits = dict.fromkeys(come, await self._newly_broken(broken))
            except TimeoutError:
                culprits = dict.fromkeys(come, f"importing it took longer than {self._timeout:g} s")
            culprits = {name: reason for name, reason in culprits.items() if reason}
            if not culprits:
                return
            failed |= {come.pop(name).nuid: f"{name}: {reason}" for name, reason in culprits.items()}

    async def _find_unimportable(self, wheels: dict[str, Installed]) -> dict[str, str]:
        folders = {name: str(self._place.folder / each.folder) for name, each in wheels.items()}
        paths = [*self._place.paths(wheels), *self._modules.elsewhere]
        broken = await checking.find_unimportable(paths, list(folders.values()))
        return {name: broken[folder] for name, folder in folders.items() if folder in broken}

    async def _newly_broken(self, broken: Mapping[str, str]) -> str:
        """Describe which installed wheels are only broken by what is to come; empty if none is."""
        before = await self._find_unimportable(self._here)
        return "; ".join(f"with it {name} breaks: {why}" for name, why in broken.items() if name not in before)

    async def _unpack(self, wheel: Wheel) -> tuple[Installed, tuple[str, ...]]:
        part = self._place.folder / f"{wheel.nuid}.part"
        folder = f"{wheel.package}-{wheel.version}-{wheel.nuid[:12]}"
        try:
            await self._download(wheel, part)
            found = await asyncio.to_thread(unpack, part, wheel.name, self._place.folder / folder)
        finally:
            part.unlink(missing_ok=True)
        if clashes := await asyncio.to_thread(self._modules.clashes, self._place.folder / folder):
            raise WheelSyncFailed(f"it would take the place of what the worker runs on: {', '.join(clashes)}")
        return installed(wheel, folder, self._clock.now()), found.requires

    async def _download(self, wheel: Wheel, part: Path) -> None:
        digest, size = hashlib.sha256(), 0
        with part.open("wb") as file:
            async for piece in self._wheels.read(wheel):
                digest.update(piece)
                size += len(piece)
                await asyncio.to_thread(file.write, piece)
        if digest.hexdigest() != wheel.sha256 or size != wheel.size:
            raise WheelSyncFailed("what was downloaded is not what was uploaded: its digest differs")

    # Afterwards

    def _place_all(self, after: dict[str, Installed], failed: dict[str, str]) -> None:
        """Writes down what is installed now, and removes what is not; a disk that is full changes nothing."""
        try:
            self._place.write(after)
        except OSError as error:
            failed |= {wheel.nuid: _told(wheel.name, error) for wheel in self._chosen.chosen}
            return
        self._here = after
        for path in self._place.leftovers(after):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def _loaded(self, failed: dict[str, str]) -> Goods:
        """Loads what can be executed now, and says how it went."""
        goods, self._unloadable = self._reloaded()
        if failed:
            self._tries = self._tries + 1 if failed.keys() <= self._failing.keys() else 1
            wait = min(self._interval * 2 ** (self._tries - 1), LONGEST_WAIT)
            self._retry = self._clock.monotonic() + wait
        self._failing = failed
        self._fresh = self._news is None
        if failed or self._unloadable:
            self._fail([*failed.values(), *self._unloadable])
        elif not self._fresh:
            self._succeeded()
        return goods

    def _reloaded(self) -> tuple[Goods, Sequence[str]]:
        """Loads anew; where that fails after a change, the worker goes on with what it had."""
        try:
            self._goods, refused = self._load()
        except TsuzukiError as error:
            if self._goods is None:
                raise
            return self._goods, [str(error)]
        return self._goods, refused

    def _changed(self, updated: list[str], removed: list[str]) -> None:
        self._state |= {"updated_wheels": updated, "removed_wheels": removed}
        self._state |= {"updated_count": len(updated), "removed_count": len(removed)}
        if updated or removed:
            self._state["last_synced_at"] = self._clock.now()
            told = [
                f"{word} {', '.join(names)}" for word, names in (("installed", updated), ("removed", removed)) if names
            ]
            logger.info("wheel sync: %s", "; ".join(told))

    def _succeeded(self) -> None:
        now = self._clock.now()
        self._count()
        self._state |= {"last_result": "ok", "last_success_at": now, "last_error": None}
        self._state["last_attempt_at"] = self._looked_at  # since then wheels may have come that it does not know

    def _fail(self, failed: Sequence[str]) -> None:
        text = "; ".join(failed)
        self._count()
        self._state |= {"last_result": "error", "last_attempt_at": self._looked_at, "last_error": text}
        logger.error("wheel sync failed: %s", text, exc_info=WheelSyncFailed(text))

    def _count(self) -> None:
        chosen, incompatible = [wheel.name for wheel in self._chosen.chosen], list(self._chosen.incompatible)
        self._state |= {"selected_wheels": chosen, "selected_count": len(chosen)}
        self._state |= {"skipped_incompatible": incompatible, "skipped_incompatible_count": len(incompatible)}


def _told(name: str, error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{name}: {said}"
