"""The folder of a server: what it was told, its configuration, its files, its log and its pid file."""

import json
import secrets
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec

from tsuzuki import privacy, wholefile
from tsuzuki.errors import BadUsage
from tsuzuki.servers import configuration
from tsuzuki.servers.binary import program
from tsuzuki.servers.configuration import Identity, Told

PID_FILE: Final = "nats-server.pid"


class Place:
    """A folder with a server in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().resolve()
        self.config = self.folder / "nats.conf"
        self.log = self.folder / "nats.log"
        self.pid_file = self.folder / PID_FILE
        self._told = self.folder / "server.json"
        self._password = self.folder / "system.password"
        self._settings = self.folder / configuration.SETTINGS_FILE
        self._identity = self.folder / "client.json"

    @property
    def used(self) -> bool:
        """Whether a server has kept something here."""
        return (self.folder / "jetstream").exists()

    def told(self) -> Told | None:
        """Gives what the server here was told, if there was one."""
        try:
            return msgspec.json.decode(self._told.read_bytes(), type=Told)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise BadUsage(f"{self._told} cannot be read ({error}); name another folder with --dir") from error

    def expected(self) -> Told:
        """Gives what the server here was told; there must have been one."""
        told = self.told()
        if told is None:
            raise BadUsage(f"there is no server in {self.folder}; start one with `tsuzuki nats up`, or say --dir")
        return told

    def furnish(
        self, told: Told, identity: Identity, settings: str | None = None, *, allow_less_tls: bool = False
    ) -> None:
        """Write the configuration; only this user may read it. Without `settings` those of the last start stay."""
        self._refuse_another_kind(told)
        if not allow_less_tls:
            self._refuse_less_tls(told, settings)
        settings = self.settings() if settings is None else settings
        configuration.refuse_reserved(settings, told)
        configuration.refuse_unauthenticated(told, identity, settings)
        privacy.make_folder(self.folder)
        if told.cluster and not self._password.exists():
            _write_private(self._password, secrets.token_urlsafe(24))
        password = self.system_password() if told.cluster else ""
        text = configuration.compose(self.folder, told, identity, password, settings)
        self._refuse_bad_syntax(text, settings)
        _write_private(self._settings, settings)
        _write_private(self._identity, msgspec.json.encode(identity).decode())
        self._record(told)
        _write_private(self.config, text)

    def record_tls(self, told: Told, varz: dict[str, Any]) -> None:
        """Record the TLS of the running server, which the next start has to have too."""
        required, verified = bool(varz.get("tls_required")), bool(varz.get("tls_verify"))
        if (required, verified) != (told.tls_required, told.tls_verified):
            self._record(msgspec.structs.replace(told, tls_required=required, tls_verified=verified))

    def _record(self, told: Told) -> None:
        _write_private(self._told, json.dumps(msgspec.to_builtins(told), indent=1) + "\n")

    def settings(self) -> str:
        """Return the settings that the operator gave this server; empty if there are none."""
        return self._settings.read_text(encoding="utf-8") if self._settings.exists() else ""

    def identity(self) -> Identity:
        """Return the user and the password that this server was told; empty if there are none."""
        try:
            return msgspec.json.decode(self._identity.read_bytes(), type=Identity)
        except FileNotFoundError:
            return Identity()
        except (OSError, msgspec.MsgspecError):
            raise BadUsage(f"{self._identity} cannot be read; name another folder with --dir") from None

    def authentication(self, said: str | None, given: Identity) -> tuple[str, Identity]:
        """Decide who may connect: as it is said now, otherwise as at the last start.

        A password that was set once is neither dropped nor changed unless `said` asks for it.
        """
        before, kept = self.told(), self.identity()
        lost = "password" if kept.user else ""  # server.json is missing, and the password is still here
        auth = said or (before.auth if before else lost)
        if said == "none" or (auth == "none" and not given.user):
            return "none", Identity()
        if said == "password" and not (given.user or kept.user):
            raise BadUsage("--auth password needs TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD; set both")
        if said:
            return said, given if given.user else kept
        if auth == "password" and kept.user and given.user and given != kept:
            raise BadUsage(
                f"the server in {self.folder} was told another user or password than TSUZUKI_NATS_USER and "
                "TSUZUKI_NATS_PASSWORD name now; unset them to keep it, or say tsuzuki nats up --auth password"
            )
        if auth == "password" and not kept.user:
            raise BadUsage(
                f"{self._identity} is missing, and the server has a user and a password. Restore the file, or set "
                "TSUZUKI_NATS_USER and TSUZUKI_NATS_PASSWORD and say --auth password"
            )
        if auth in ("password", "settings"):
            return auth, kept
        return ("password", given) if given.user else (auth, Identity())

    def differences(self, told: Told, varz: dict[str, Any]) -> list[str]:
        """Compare what the running server reports with what it was told."""
        return configuration.differences(self.folder, told, self.settings(), varz)

    def _refuse_bad_syntax(self, text: str, settings: str) -> None:
        """Let the server read the configuration before it replaces the one of the last start."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="check-") as beside:
            trial = Path(beside) / self.config.name
            _write_private(trial, text)
            _write_private(trial.with_name(configuration.SETTINGS_FILE), settings)
            command = [program(), "-t", "--config", str(trial)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our dependency
            if result.returncode != 0:
                reason = (
                    (result.stderr or result.stdout).strip().replace(f"{beside}/", "").removeprefix("nats-server: ")
                )
                raise BadUsage(f"nats-server refuses the settings ({reason}); correct the file of --settings")

    def _refuse_less_tls(self, told: Told, settings: str | None) -> None:
        """Refuse to start with less TLS than before, also where a file that says so was lost."""
        drop = "or drop it on purpose with --allow-less-tls"
        kept = self._settings.exists()
        if self.told() is None and self._identity.exists():
            if not kept:
                raise BadUsage(
                    f"server.json and settings.conf are missing in {self.folder}: whether the server had TLS is not "
                    f"known. Restore them, {drop}"
                )
            required, verified = configuration.tls_of(self.settings())
            told = msgspec.structs.replace(told, tls_required=required, tls_verified=verified)
        if missing := configuration.missing_tls(told, self.settings() if settings is None else settings):
            lost = "" if kept else f" ({self._settings} is missing)"
            raise BadUsage(
                f"the server in {self.folder} had {missing}, and its settings have it no more{lost}. "
                f"Add it to the file of --settings, {drop}"
            )

    def _refuse_another_kind(self, told: Told) -> None:
        """A lone server that joins a cluster forgets its streams: the cluster does not know them."""
        before = self.told()
        if before is not None and self.used and before.cluster != told.cluster:
            raise BadUsage(
                f"{self.folder} has the files of a server {_kind(before)}, and would lose them {_kind(told)}; "
                "back them up (tsuzuki nats backup), start in a new folder (--dir), and restore there"
            )

    def system_password(self) -> str:
        """Gives the password of the account that may take servers out of the cluster."""
        try:
            return self._password.read_text(encoding="ascii")
        except OSError as error:
            raise BadUsage(
                f"the server in {self.folder} is of no cluster ({error.strerror}: {self._password})"
            ) from error


def _kind(told: Told) -> str:
    return f"of the cluster {told.cluster}" if told.cluster else "that is alone"


def _write_private(path: Path, text: str) -> None:
    wholefile.write(path, text.encode(), mode=0o600)
