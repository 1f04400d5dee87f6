"""The unit by which systemd keeps a server running."""

import shlex
import stat
from pathlib import Path

from tsuzuki.servers.binary import program
from tsuzuki.servers.place import Place


def written(place: Place, user: str) -> str:
    """Gives the text of the unit; nothing is installed."""
    told = place.expected()
    who = [f"User={user}"] if user else []
    return "\n".join(
        [
            "[Unit]",
            f"Description=NATS server {told.called} for Tsuzuki",
            "Wants=network-online.target",
            "After=network-online.target",
            "",
            "[Service]",
            *who,
            f"ExecStart={_quoted(program())} --config {_quoted(str(place.config))}",
            "ExecReload=/bin/kill -HUP $MAINPID",
            "Restart=on-failure",
            "RestartSec=2",
            "KillSignal=SIGTERM",
            "TimeoutStopSec=60",
            "LimitNOFILE=65536",
            "UMask=0077",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def handover(place: Place, user: str) -> list[str]:
    """Return what is left to do before a user can run the server: its files are closed to others."""
    advice = {
        place.folder: "start the server in another folder, such as --dir /var/lib/tsuzuki-nats, and repeat this",
        Path(program()): "install tsuzuki where every user can reach it, and repeat this",
    }
    unreachable = [
        f"  # {user} cannot reach {path}: {closed} is closed to other users; {do}"
        for path, do in advice.items()
        if (closed := _closed_above(path, user))
    ]
    return [*unreachable, f"  sudo chown -R {shlex.quote(user)}: {shlex.quote(str(place.folder))}"]


def _closed_above(path: Path, user: str) -> Path | None:
    """Find a folder above that neither belongs to the user nor lets others through."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH and _owner(folder) != user:
            return folder
    return None


def _owner(folder: Path) -> str:
    try:
        return folder.owner()
    except KeyError:  # a number without a name
        return ""


def _quoted(word: str) -> str:
    """Writes a word of a command as systemd reads it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(sign in word for sign in " \t\"'\\") else escaped
