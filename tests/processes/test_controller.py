"""What the controller of a cluster makes of questions that make no sense."""

import socket
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tsuzuki.servers.configuration import Identity, Told
from tsuzuki.servers.controller import Controller, _Answering
from tsuzuki.servers.place import Place


@pytest.mark.parametrize("length", ["-1", "many", "99999999"])
def test_a_body_of_no_sensible_length_is_refused_at_once(tmp_path: Path, length: str) -> None:
    place = Place(tmp_path)
    place.furnish(Told(cluster="here"), Identity())
    answering = type("Answering", (_Answering,), {"controller": Controller(place, Identity())})
    with ThreadingHTTPServer(("127.0.0.1", 0), answering) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
            connection.sendall(f"POST /leave HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.0 422 ")
        server.shutdown()
        thread.join()
