"""The gateway: the runs of a store over HTTP, for any ASGI server (`tsuzuki.gateway:create_app`)."""

from tsuzuki import extras

try:
    from tsuzuki.gateway.app import create_app
except ModuleNotFoundError as error:
    told = extras.missing(error)
    if told is None:
        raise
    raise ModuleNotFoundError(str(told), name=error.name) from error

__all__ = ["create_app"]
