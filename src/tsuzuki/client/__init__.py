"""Clients of the gateway, in Python: `Client` for programs that wait, `AsyncClient` for async ones."""

from tsuzuki.client.awaiting import AsyncClient
from tsuzuki.client.failures import HTTPStatusError, ServerUnreachable
from tsuzuki.client.waiting import Client

__all__ = ["AsyncClient", "Client", "HTTPStatusError", "ServerUnreachable"]
