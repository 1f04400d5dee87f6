"""The options by which a worker installs wheels before its runs, and what they make."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsuzuki import settings
from tsuzuki.backends import Backend
from tsuzuki.supply import Goods, Supply

if TYPE_CHECKING:
    from tsuzuki.wheels.modules import Modules


@dataclass(slots=True)
class Wheels:
    """Whether a worker installs wheels, and how."""

    on: bool
    folder: str | None
    interval: float | None
    timeout: float | None
    modules: "Modules | None" = field(default=None)

    @property
    def flags(self) -> list[str]:
        """The same as arguments, for another process."""
        said = [("--wheel-sync-dir", self.folder), ("--wheel-sync-interval-sec", self.interval)]
        said += [("--wheel-install-timeout-sec", self.timeout)]
        given = [word for name, value in said if value is not None for word in (name, str(value))]
        return ["--wheel-sync" if self.on else "--no-wheel-sync", *given]

    def begin(self) -> None:
        """Takes note of what this process runs on, before it loads anything of its users."""
        if self.on:
            from tsuzuki.wheels.modules import Modules  # noqa: PLC0415 - only those who sync pay for it

            self.modules = Modules()

    def supply(
        self, load: Callable[[], tuple[Goods, Sequence[str]]], backend: Backend, tags: Sequence[str] | None
    ) -> Supply | None:
        """Gives what keeps the wheels of a worker, if it is to have any."""
        if not self.on:
            return None
        from tsuzuki.wheels.sync import WheelSync  # noqa: PLC0415 - the same

        return WheelSync(
            backend,
            [settings.default_tag()] if tags is None else tags,
            load,
            folder=Path(self.folder) if self.folder else settings.wheel_sync_dir(),
            interval=self.interval or float(settings.value("TSUZUKI_WHEEL_SYNC_INTERVAL_SEC")),
            timeout=self.timeout or float(settings.value("TSUZUKI_WHEEL_INSTALL_TIMEOUT_SEC")),
            modules=self.modules,
        )


def wheel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options about wheels, as one argument `wheels`."""

    @click.option("--wheel-sync/--no-wheel-sync", default=None, help="Install the store's wheels [default: no].")
    @click.option("--wheel-sync-dir", metavar="FOLDER", help="Where they are put [default: wheels beside the store].")
    @click.option("--wheel-sync-interval-sec", type=click.FloatRange(0, min_open=True), help="Look so often.")
    @click.option("--wheel-install-timeout-sec", type=click.FloatRange(0, min_open=True), help="It may take so long.")
    @wraps(command)
    def with_wheels(
        *given: Any,
        wheel_sync: bool | None,
        wheel_sync_dir: str | None,
        wheel_sync_interval_sec: float | None,
        wheel_install_timeout_sec: float | None,
        **options: Any,
    ) -> Any:
        on = bool(settings.value("TSUZUKI_WHEEL_SYNC_ENABLED")) if wheel_sync is None else wheel_sync
        wheels = Wheels(on, wheel_sync_dir, wheel_sync_interval_sec, wheel_install_timeout_sec)
        return command(*given, wheels=wheels, **options)

    return with_wheels
