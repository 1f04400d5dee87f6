"""What the controller of a cluster makes of questions that make no sense, or come from a web page."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tsuzuki.errors import Conflict
from tsuzuki.servers import controller
from tsuzuki.servers.configuration import Identity, Told
from tsuzuki.servers.controller import Controller, _Answering
from tsuzuki.servers.place import Place

TEAM = Identity("team", "pä:ss")


@contextlib.contextmanager
def answering(folder: Path, identity: Identity) -> Iterator[int]:
    """Serves the controller of a cluster whose server does not run; gives its port."""
    place = Place(folder)
    place.furnish(Told(cluster="here"), identity)
    handler = type("Answering", (_Answering,), {"controller": Controller(place, identity)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def asked(port: int, **headers: str) -> tuple[int, str]:
    """Asks for a server to leave; gives the status and the reason."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", "/leave", json.dumps({"server": "n3"}), {"Content-Type": "application/json"} | named)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told["error"]


@pytest.mark.parametrize("length", ["-1", "many", "99999999"])
def test_a_body_of_no_sensible_length_is_refused_at_once(tmp_path: Path, length: str) -> None:
    with (
        answering(tmp_path, Identity()) as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        head = "POST /leave HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.0 422 ")


def test_a_web_page_takes_no_server_out(tmp_path: Path) -> None:
    with answering(tmp_path, Identity()) as port:
        status, reason = asked(port)
        assert (status, "there is no server 'n3'" in reason) == (422, True), "a command is heard"
        page = {"Origin": "http://evil.example", "Content_Type": "text/plain;charset=UTF-8"}
        assert asked(port, **page)[0] == 403, "fetch with mode no-cors"
        assert asked(port, Origin="null", Content_Type="text/plain")[0] == 403, "a page in a sandbox"
        assert asked(port, Origin=f"http://127.0.0.1:{port}")[0] == 403, "the controller has no pages itself"
        assert asked(port, Content_Type="text/plain")[0] == 415, "a form"
        assert asked(port, Host=f"evil.example:{port}")[0] == 403, "a name that was bound to this address"
        assert asked(port, Host=f"localhost:{port}")[0] == 422


def test_whoever_asks_has_to_know_the_password_of_the_cluster(tmp_path: Path) -> None:
    with answering(tmp_path, TEAM) as port:
        assert asked(port)[0] == 401
        assert asked(port, Authorization="Basic d3Jvbmc6d3Jvbmc=")[0] == 401
        assert asked(port, Authorization="Basic \xe4")[0] == 401
        with pytest.raises(Conflict, match="there is no server 'n3'"):
            controller.ask_to_leave(f"http://127.0.0.1:{port}", "n3", TEAM)


@pytest.mark.parametrize("sent", ["POST /leave HTTP/1.1\r\nHo", "POST /leave HTTP/1.1\r\nHost: localhost\r\n"])
def test_whoever_does_not_finish_a_question_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    monkeypatch.setattr(controller, "READ_TIMEOUT_S", 0.2)
    with (
        answering(tmp_path, Identity()) as port,
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        connection.sendall(f"{sent}Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{{".encode())
        while connection.recv(1000):  # it ends, instead of keeping a thread for ever
            pass
