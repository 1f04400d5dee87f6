"""Whom a client trusts: to read the authorities takes longer than a call, so that it is done once, and where needed."""

import functools
import ssl
from urllib.parse import urlsplit

import httpx2


def trusted(server: str) -> ssl.SSLContext | bool:
    """Gives the authorities that are asked about a gateway; over plain HTTP none are."""
    return _authorities() if urlsplit(server).scheme != "http" else False


@functools.cache
def _authorities() -> ssl.SSLContext:
    return httpx2.create_ssl_context()
