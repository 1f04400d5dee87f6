"""The only code that reads the environment: what can be set, its name there, and its default."""

import os
from pathlib import Path
from typing import Final

from tsuzuki.errors import BadUsage

PREFIX: Final = "TSUZUKI_"


def data_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """Gives the data directory: as given, from TSUZUKI_DATA_DIR, or `.tsuzuki` in the current folder."""
    return Path(given or os.environ.get(f"{PREFIX}DATA_DIR") or ".tsuzuki")


def backend_url(given: str | None = None, directory: str | os.PathLike[str] | None = None) -> str:
    """Gives the address of the store: as given, from TSUZUKI_BACKEND, or the SQLite file in the data directory."""
    url = given or (None if directory else os.environ.get(f"{PREFIX}BACKEND"))
    return url or f"sqlite:{data_dir(directory) / 'tsuzuki.db'}"


def nats_credentials() -> dict[str, str]:
    """Gives how to prove who we are to NATS, where the address does not say it.

    TSUZUKI_NATS_CREDS, TSUZUKI_NATS_NKEY, TSUZUKI_NATS_TOKEN, TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD;
    TSUZUKI_NATS_TLS_CA, TSUZUKI_NATS_TLS_CERT and TSUZUKI_NATS_TLS_KEY.
    """
    names = ("creds", "nkey", "token", "user", "password", "tls_ca", "tls_cert", "tls_key")
    given = {name: os.environ.get(f"{PREFIX}NATS_{name.upper()}", "") for name in names}
    return {name: value for name, value in given.items() if value}


def grace_period() -> float:
    """Gives how long a cancelled or draining run may take to end: TSUZUKI_GRACE_SECONDS, or 30."""
    return _seconds("GRACE_SECONDS", 30.0)


def lease() -> float:
    """Gives how long a worker may be silent before its runs are taken over: TSUZUKI_LEASE_SECONDS, or 30."""
    return _seconds("LEASE_SECONDS", 30.0)


def _seconds(name: str, default: float) -> float:
    text = os.environ.get(PREFIX + name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        raise BadUsage(f"{PREFIX}{name} must be a number of seconds, not {text!r}") from None
    if value <= 0:
        raise BadUsage(f"{PREFIX}{name} must be above 0, not {text!r}")
    return value
