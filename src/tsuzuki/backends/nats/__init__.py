"""The store on NATS JetStream, which workers on many machines share."""

from tsuzuki.backends.nats.store import NatsBackend

__all__ = ["NatsBackend"]
