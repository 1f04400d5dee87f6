"""What can be chosen for a gateway."""

from dataclasses import dataclass
from typing import Final

from tsuzuki import settings

HEARTBEAT: Final = 2.5
"""A stream that has nothing to tell says so this often (seconds); existing clients give up after five."""
STALL: Final = 20.0
"""A client that takes nothing for so long (seconds) is let go."""
STORE_WAIT: Final = 2.0
"""The server of a store is waited for so long (seconds), unless its address says it: clients give up after five."""
BODY_WAIT: Final = 30.0
"""A request's body must have arrived after so long (seconds)."""


@dataclass(frozen=True, slots=True)
class Options:
    """The choices, with their defaults."""

    auth: bool = False
    api_key_header: str = "X-API-Key"
    max_streams: int = 1000
    max_request_bytes: int = 4_194_304
    max_snapshot_bytes: int = 262_144
    max_workflow_bytes: int = 262_144
    max_wheel_bytes: int = 536_870_912
    dashboard_lang: str = "auto"
    only_local: bool = False
    """Whether only names of this machine are answered to: set where nobody is asked for a key."""


def from_environment() -> Options:
    """Reads the choices from the environment."""
    return Options(**settings.gateway())
