"""The gateways of the tests of the gateway, for those that also ask its applications."""

from tests.gateway.conftest import address, serve

__all__ = ["address", "serve"]
