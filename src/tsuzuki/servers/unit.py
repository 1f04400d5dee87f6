"""The unit by which systemd keeps a server running."""

from tsuzuki.servers.place import Place, program


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
            f"PIDFile={place.pid_file}",
            f"StandardOutput=append:{place.log}",
            f"StandardError=append:{place.log}",
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


def _quoted(word: str) -> str:
    """Writes a word of a command as systemd reads it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if any(sign in word for sign in " \t\"'\\") else escaped
