"""The process of a server: started apart from us, waited for, and ended by its pid file alone.

A process is ended only if it is a nats-server with the configuration of that folder: a pid in a file may belong to
anybody by now.
"""

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Final

from tsuzuki.clock import SystemClock
from tsuzuki.errors import BadUsage, StoreUnavailable
from tsuzuki.listening import bound
from tsuzuki.servers.binary import program
from tsuzuki.servers.configuration import Told
from tsuzuki.servers.place import Place

CLOCK: Final = SystemClock()
_PROCESSES: Final = Path("/proc")
_LOOK: Final = 0.05
_LINES: Final = 5
"""So many of the last lines of its log are shown when it does not start."""


def running(place: Place) -> int | None:
    """Gives the pid of the server of a folder, if it runs."""
    try:
        pid = int(place.pid_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return pid if _is_ours(pid, place) else None


def _is_ours(pid: int, place: Place) -> bool:
    words = _command(pid)
    return len(words) > 1 and Path(words[0]).name.startswith("nats-server") and str(place.config) in words


def _command(pid: int) -> list[str]:
    """Gives the command line of a process; nothing where there is none, or it has ended."""
    if _PROCESSES.is_dir():
        try:
            return (_PROCESSES / str(pid) / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        except OSError:
            return []
    told = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False)  # noqa: S603, S607 - the system's own, with a number
    return told.stdout.split()


def start(place: Place, told: Told, seconds: float) -> int:
    """Starts the server, and waits until it is ready; gives its pid. One that is not ready in time is ended again."""
    refuse_taken(told)
    place.pid_file.unlink(missing_ok=True)
    with place.log.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - the program of our own dependency
            [program(), "--config", str(place.config)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it goes on when this terminal is closed
        )
    try:
        _until_ready(place, told, process, seconds)
        refuse_differences(place, told)
    except BaseException:
        process.terminate()
        process.wait()
        place.pid_file.unlink(missing_ok=True)
        raise
    return process.pid


def refuse_differences(place: Place, told: Told) -> None:
    """Refuse a server that is not what it was told to be, whatever the reason; record the TLS of one that is."""
    varz = monitor(told, "varz")
    if different := place.differences(told, varz):
        raise BadUsage(f"the server was ended again: {'; '.join(different)}; correct its settings (--settings FILE)")
    place.record_tls(told, varz)


def refuse_taken(told: Told) -> None:
    """Refuses ports on which somebody listens, before anything is written."""
    for option, port in _ports(told).items():
        bound("127.0.0.1" if option == "--http-port" else told.host, port, option).close()


def _ports(told: Told) -> dict[str, int]:
    more = {"--cluster-port": told.cluster_port} if told.cluster else {}
    return {"--port": told.port, "--http-port": told.http_port, **more}


def _until_ready(place: Place, told: Told, process: "subprocess.Popen[bytes]", seconds: float) -> None:
    until = CLOCK.monotonic() + seconds
    while not _ready(told):
        if process.poll() is not None:
            raise StoreUnavailable(f"the server ended at once: {last_lines(place)}")
        if CLOCK.monotonic() > until:
            raise StoreUnavailable(
                f"the server is not ready after {seconds:g} s, and was ended again ({_doubt(told)}); "
                f"{place.log} says more"
            )
        time.sleep(_LOOK)


def _doubt(told: Told) -> str:
    health = monitor(told, "healthz")
    return str(health.get("error") or "it does not answer") if told.cluster or health else "it does not answer"


def _ready(told: Told) -> bool:
    """A server is ready when it is healthy; the first of a cluster waits for a second one, and is when it answers."""
    if told.cluster and not told.routes:
        return _greets(told) and bool(monitor(told, "varz"))
    return monitor(told, "healthz").get("status") == "ok" and (not told.cluster or bool(leader(told)))


def _greets(told: Told) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((told.reached, told.port), timeout=1) as connection:
        return connection.recv(4) == b"INFO"
    return False


def leader(told: Told) -> str:
    """Names the server that places the streams of the cluster; empty where they have not agreed."""
    return str((monitor(told, "jsz").get("meta_cluster") or {}).get("leader") or "")


def monitor(told: Told, page: str) -> dict[str, Any]:
    """Asks the server on this machine what it tells of itself; nothing where it does not answer."""
    connection = http.client.HTTPConnection("127.0.0.1", told.http_port, timeout=2)
    try:
        connection.request("GET", f"/{page}")
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    finally:
        connection.close()


def last_lines(place: Place) -> str:
    """Gives the end of the log, in one line."""
    try:
        lines = place.log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "it wrote no log"
    return " | ".join(line.partition("] ")[2] or line for line in lines[-_LINES:])


def end(place: Place, seconds: float) -> int:
    """Ends the server of a folder in order, and waits until it is gone; gives its pid."""
    pid = running(place)
    if pid is None:
        raise BadUsage(
            f"no server of {place.folder} runs here: {place.pid_file} is missing, or names a process that is not it; "
            "nothing was ended"
        )
    if not _ended(pid, place, seconds):
        raise StoreUnavailable(f"process {pid} did not end within {seconds:g} s; it was told to, wait for it")
    place.pid_file.unlink(missing_ok=True)
    return pid


def _ended(pid: int, place: Place, seconds: float) -> bool:
    if not hasattr(os, "pidfd_open"):
        os.kill(pid, signal.SIGTERM)
        until = CLOCK.monotonic() + seconds
        while _is_ours(pid, place) and CLOCK.monotonic() < until:
            time.sleep(_LOOK)
        return not _is_ours(pid, place)
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:  # it ended by itself
        return True
    try:
        if not _is_ours(pid, place):  # looked at again: from here on the number cannot become another's
            return True
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)
