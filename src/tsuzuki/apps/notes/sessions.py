"""Session folders: made, found, listed and removed; each holds all that is needed to go on, wherever it is moved to."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tsuzuki import privacy, settings, wholefile
from tsuzuki.apps.notes import keeping
from tsuzuki.apps.notes.outputs import COMPLETE, INDEX, ITEMS
from tsuzuki.apps.notes.phases import PhaseStatistics, PhaseStatus
from tsuzuki.apps.notes.refusals import (
    OF_THE_EXPORT,
    InputChanged,
    InTheWay,
    NoInput,
    SessionBusy,
    SessionNotFound,
    VaultGone,
)
from tsuzuki.apps.notes.room import room
from tsuzuki.apps.notes.smallfiles import broken, look_at, read, write
from tsuzuki.apps.notes.sources.spelling import spelled
from tsuzuki.apps.notes.times import CLOCK, checked_session_id, now, session_id_at
from tsuzuki.errors import BadUsage

VERSION: Final = 1
_TRIES: Final = 25
_BRIEFLY: Final = 0.02
"""How often, and after which pause (seconds), a session is tried that somebody may only be looking at."""
_UNSEEN: Final = (".", "lost+found")
"""How names begin of what a folder has that people call empty."""
_MOST_TRIES: Final = 10_000
_LINK: Final = ".link"
_SAYS: Final[dict[str, type]] = {
    "session_id": str, "created_at": str, "provider": str, "source": str, "vault": str, "options": dict, "runs": list,
}  # fmt: skip
"""What `session.json` says at least."""
OWN_VAULT: Final = "vault"
"""The folder in a session into which the notes go where no other was named."""


@dataclass(frozen=True, slots=True)
class Session:
    """One import, as a folder."""

    folder: Path

    @property
    def session_id(self) -> str:
        """The id: the moment it was made, as its file says."""
        return str(self.about["session_id"])

    @property
    def about(self) -> dict[str, Any]:
        """What was asked for: `session.json`."""
        found = read(self.folder / "session.json")
        for name, kind in _SAYS.items():
            if not isinstance(found.get(name), kind):
                raise broken(self.folder / "session.json", f"{name}: {found.get(name)!r}")
        return found

    @property
    def options(self) -> dict[str, Any]:
        """The options of the import."""
        return dict(self.about["options"])

    @property
    def vault(self) -> Path:
        """Where the notes go: anywhere, or into the session itself."""
        return self.folder / str(self.about["vault"])

    @property
    def since(self) -> int:
        """Where the log ended when somebody asked last to go on: what it says up to there was done before."""
        return int(self.about.get("since", 0))

    def lead_to(self, vault: Path) -> None:
        """Lets notes go to another vault from here on, which need not be there yet."""
        try:
            vault.mkdir(parents=True, exist_ok=True)
        except OSError:
            raise VaultGone(vault) from None
        self.change(vault=str(vault.resolve()), vault_since=self._written)

    @property
    def lost_its_vault(self) -> bool:
        """Whether notes were written into a vault that is not there: an empty one in its place would hide that."""
        return self._written > 0 and not self.vault.is_dir()

    @property
    def found_its_vault_empty(self) -> bool:
        """Whether a folder with nothing in it stands where notes were written: a drive is gone, and left its place."""
        since = int(self.about.get("vault_since", 0))
        return self._written > since and all(each.name.startswith(_UNSEEN) for each in self.vault.iterdir())

    @property
    def _written(self) -> int:
        """How much was written down about notes in the vault (bytes)."""
        return self.loaded.stat().st_size if self.loaded.is_file() else 0

    def change(self, **fields: Any) -> None:
        """Changes what `session.json` says."""
        write(self.folder / "session.json", {**self.about, **fields})

    @property
    def phase(self) -> Path:
        """The folder of the phase."""
        return self.folder / "import"

    @property
    def stage_log(self) -> Path:
        """The log of stages."""
        return self.phase / "pipeline_stages.jsonl"

    @property
    def error_log(self) -> Path:
        """The log of failures."""
        return self.phase / "error_details.jsonl"

    @property
    def steps_log(self) -> Path:
        """The log of each time the phase was worked on."""
        return self.phase / "steps.jsonl"

    @property
    def batches_log(self) -> Path:
        """What was asked in batches."""
        return self.phase / "batches.jsonl"

    @property
    def extracted(self) -> Path:
        """The folder of what extract put out."""
        return self.phase / "extract/output"

    @property
    def transformed(self) -> Path:
        """What transform put out."""
        return self.phase / "transform/output/items.jsonl"

    @property
    def loaded(self) -> Path:
        """Which file belongs to which item."""
        return self.phase / "load/output/files.jsonl"

    @property
    def input(self) -> Path:
        """The export, as it is kept here."""
        place, told = self.phase / "extract/input", self.about.get("input", {})
        found = place / told.get("name", "") if told.get("kind") == "file" else place
        if not found.exists() or (found.is_dir() and not any(found.iterdir())):
            raise NoInput.because(
                f"セッション {self.session_id} にエクスポートがありません。{place} に置いてください",
                f"session {self.session_id} has none: put the export into {place}",
            )
        if (other := keeping.changed(place, told)) is not None:
            raise InputChanged(other)
        return found

    @property
    def may_be_mended(self) -> bool:
        """Whether the export could not be read, so that another may take its place: nothing has come of it yet."""
        broken = self.state().get("error_type") in OF_THE_EXPORT
        return broken and not (self.stage_log.is_file() and self.stage_log.stat().st_size)

    def know_input_again(self) -> None:
        """Takes the export that is there now for the one to import."""
        told = self.about.get("input", {})
        self.change(input=keeping.marked_anew(self.phase / "extract/input", told))

    def state(self) -> dict[str, Any]:
        """Gives what `phase.json` says; the log knows the same, so that one that is broken or lost stops nobody."""
        try:
            found = read(self.phase / "phase.json")
            PhaseStatus(found["status"])
        except InTheWay:
            raise
        except (SessionNotFound, BadUsage, KeyError, ValueError):
            begun = self.stage_log.is_file() and self.stage_log.stat().st_size > 0
            status = PhaseStatus.PARTIAL if begun else PhaseStatus.PENDING
            return {"phase": "import", "status": status.value}
        return found

    def enter(self, status: PhaseStatus, statistics: PhaseStatistics | None = None, **more: Any) -> None:
        """Writes how the phase stands."""
        kept = {name: value for name, value in self.state().items() if name in ("phase", "started_at")}
        figures = {} if statistics is None else {
            "success_count": statistics.success_count,
            "error_count": statistics.error_count,
            "skipped_count": statistics.skipped_count,
            "total_count": statistics.total_count,
        }  # fmt: skip
        write(self.phase / "phase.json", {**kept, "status": status.value, **figures, **more})

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it may consist of, beside the export."""
        extracted = (self.extracted / name for name in (ITEMS, INDEX, COMPLETE))
        logs = self.stage_log, self.error_log, self.steps_log, self.batches_log
        own = self.folder / "session.json", self.phase / "phase.json"
        locks = self.phase / "lock", self.phase / "begin.lock"
        return (*own, *locks, *logs, *extracted, self.transformed, self.loaded)

    def checked(self, *, writing: bool = False) -> "Session":
        """Gives itself; refuses where something stands in the place of one of its files that is none, or not ours."""
        for path in self.files:
            look_at(path, os.O_RDWR if writing else os.O_RDONLY)
        return self

    def held(self) -> AbstractContextManager[None]:
        """Holds the session while it is worked on; whoever else tries is refused. A dead process holds nothing."""
        return self._locked("lock")

    @asynccontextmanager
    async def held_soon(self) -> AsyncIterator[None]:
        """Holds the session, as soon as those have let go who only look whether somebody does: they hold it, too."""
        with ExitStack() as stack:
            for left in reversed(range(_TRIES)):
                try:
                    stack.enter_context(self.held())
                    break
                except SessionBusy:
                    if not left:
                        raise
                    await asyncio.sleep(_BRIEFLY)
            yield

    def begun(self) -> AbstractContextManager[None]:
        """Holds the session while somebody begins to work on it: whoever is refused has changed nothing."""
        return self._locked("begin.lock")

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        self.checked(writing=True)
        if not self.phase.is_dir():
            self.input  # noqa: B018 - it raises: there is none
        descriptor = os.open(self.phase / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise SessionBusy from None
        try:
            yield
        finally:
            os.close(descriptor)

    @property
    def worked_on(self) -> bool:
        """Whether somebody holds it; asked only where that is not known otherwise, since asking holds it, too."""
        try:
            with self.held():
                return False
        except SessionBusy:
            return True


class Sessions:
    """The sessions of a tenant."""

    def __init__(self, tenant: str = "", data_dir: Path | None = None) -> None:
        place = data_dir or settings.data_dir()
        self.root = (place / "tenants" / quote(tenant, safe="") if tenant else place) / "notes"

    def create(
        self, export: Path, provider: str, vault: Path | None, options: Mapping[str, Any], folder: Path | None = None
    ) -> Session:
        """Makes a session, and keeps the export in it; where that cannot be done, nothing stays of it."""
        with room():
            session_id, place = self._claim(folder)
            about = {
                "session_id": session_id,
                "version": VERSION,
                "created_at": now(),
                "provider": provider,
                "source": spelled(export.name),
                "vault": OWN_VAULT if vault is None else str(vault.resolve()),
                "options": dict(options),
                "runs": [],
            }
            try:
                return _filled(Session(place), export, about)
            except OSError:
                shutil.rmtree(place, ignore_errors=True)
                (self.root / f"{session_id}{_LINK}").unlink(missing_ok=True)
                raise

    def _claim(self, folder: Path | None) -> tuple[str, Path]:
        """Finds an id that nobody has; two sessions in one second get two ids."""
        privacy.make_folder(self.root)
        if folder is not None and folder.exists() and any(folder.iterdir()):
            raise BadUsage(
                f"{folder} は空ではありません。--session-dir にはこのセッション専用のフォルダーを指定してください / "
                f"{folder} is not empty: --session-dir names a folder for this session alone"
            )
        for later in range(_MOST_TRIES):
            session_id = session_id_at(CLOCK.now() + later)
            place, link = self.root / session_id, self.root / f"{session_id}{_LINK}"
            try:
                if folder is None and not link.exists():
                    place.mkdir()
                    return session_id, place
                if folder is not None and not place.exists():
                    with link.open("x", encoding="utf-8") as file:
                        file.write(str(folder.resolve()))
                    wholefile.sync_file(link)
                    folder.mkdir(parents=True, exist_ok=True)
                    return session_id, folder.resolve()
            except FileExistsError:
                continue
        raise BadUsage(
            "この時間のセッションが多すぎます。`tsuzuki notes clean` で削除してください / "
            "there are too many sessions of this hour: remove some with `tsuzuki notes clean`"
        )

    def find(self, session_id: str) -> Session:
        """Finds a session by its id."""
        link = self.root / f"{checked_session_id(session_id)}{_LINK}"
        folder = Path(link.read_text(encoding="utf-8")) if link.exists() else self.root / session_id
        if not os.path.lexists(folder / "session.json"):
            raise SessionNotFound(session_id)
        return Session(folder)

    def adopt(self, folder: Path) -> Session:
        """Takes in a session folder from elsewhere, so that it is known by its id."""
        session = Session(folder.resolve()).checked()
        if not os.path.lexists(folder / "session.json"):
            raise SessionNotFound(str(folder))
        session_id = checked_session_id(session.session_id)
        privacy.make_folder(self.root)
        if session.folder != (self.root / session_id).resolve():
            (self.root / f"{session_id}{_LINK}").write_text(str(session.folder), encoding="utf-8")
        return session

    def all(self) -> list[Session]:
        """Lists them, the newest first."""
        names = {path.name.removesuffix(_LINK) for path in self.root.iterdir()} if self.root.exists() else set()
        return [found for name in sorted(names, reverse=True) if (found := self._known(name)) is not None]

    def _known(self, name: str) -> Session | None:
        try:
            return self.find(name)
        except (SessionNotFound, BadUsage):
            return None

    def latest(self) -> Session:
        """Gives the newest."""
        found = self.all()
        if not found:
            raise self.none_yet()
        return found[0]

    @staticmethod
    def none_yet() -> SessionNotFound:
        """Says that there is none."""
        return SessionNotFound("there is none yet (tsuzuki notes import EXPORT --out VAULT)")

    def remove(self, session: Session) -> None:
        """Removes a session; notes in the vault stay."""
        session_id = session.session_id
        shutil.rmtree(session.folder)
        (self.root / f"{session_id}{_LINK}").unlink(missing_ok=True)


def _filled(session: Session, export: Path, about: dict[str, Any]) -> Session:
    """Makes what a session consists of; the file that makes it one comes last."""
    for part in ("extract/input", "extract/output", "transform/output", "load/output"):
        (session.phase / part).mkdir(parents=True, exist_ok=True)
    told = keeping.kept(export, about["provider"], session.phase / "extract/input")
    for folder in (session.phase / "extract", session.phase, session.folder, session.folder.parent):
        wholefile.sync_folder(folder)
    privacy.make_file(session.phase / "begin.lock")
    write(session.phase / "phase.json", {"phase": "import", "status": PhaseStatus.PENDING.value})
    write(session.folder / "session.json", {**about, "input": told})
    return session
