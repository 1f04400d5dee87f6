"""Where a gateway listens: whom that lets in, and why it cannot."""

import contextlib
import errno
import functools
import ipaddress
import socket

from tsuzuki.errors import BadUsage


@functools.lru_cache(maxsize=64)  # the same few hosts in every request
def is_loopback(host: str) -> bool:
    """Tells whether only this machine can reach an address; a name that is not an address has to be localhost."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def refuse_open_door(host: str, *, auth: bool, allowed: bool) -> None:
    """Refuses to listen to the network without keys, unless that was asked for by name."""
    if auth or allowed or is_loopback(host):
        return
    raise BadUsage(
        f"{host} can be reached from other machines, and no API key is asked for: set TSUZUKI_HTTP_AUTH=api_key and "
        "make keys (tsuzuki keys create --tenant NAME), listen on 127.0.0.1, or say --allow-unauthenticated"
    )


def bound(host: str, port: int, option: str = "--port", *, host_option: str = "--host") -> socket.socket:
    """Gives a socket bound to an address, or says in one line why it cannot be and which option chooses another."""
    place = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((host, port))
    except OSError as error:
        place.close()
        of_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        choose = f"choose another with {option if of_port else host_option}"
        raise BadUsage(f"cannot listen on {host}:{port}: {error.strerror}; {choose}") from error
    return place
