"""The gateway: the runs of a store over HTTP, for any ASGI server (`tsuzuki.gateway:create_app`)."""

from tsuzuki.gateway.app import create_app

__all__ = ["create_app"]
