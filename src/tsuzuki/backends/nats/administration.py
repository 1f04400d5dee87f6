"""Where an administrator asks things of a server: to make streams, what it has, copies, and to take a server out."""

from tsuzuki.backends.nats.topology import API


def account_info() -> str:
    """Where the server tells how much an account has and may have."""
    return f"{API}.INFO"


def stream_names() -> str:
    """Where the server names its streams."""
    return f"{API}.STREAM.NAMES"


def create_stream(stream: str) -> str:
    """Where a stream is made."""
    return f"{API}.STREAM.CREATE.{stream}"


def update_stream(stream: str) -> str:
    """Where the settings of a stream are changed."""
    return f"{API}.STREAM.UPDATE.{stream}"


def delete_stream(stream: str) -> str:
    """Where a stream is deleted."""
    return f"{API}.STREAM.DELETE.{stream}"


def snapshot_stream(stream: str) -> str:
    """Where a copy of a stream is asked for."""
    return f"{API}.STREAM.SNAPSHOT.{stream}"


def restore_stream(stream: str) -> str:
    """Where a stream is made of a copy."""
    return f"{API}.STREAM.RESTORE.{stream}"


def snapshot_received(stream: str) -> str:
    """Where pieces of a copy are acknowledged."""
    return f"$JS.SNAPSHOT.ACK.{stream}.>"


def restore_pieces(stream: str) -> str:
    """Where the pieces of a copy are sent to."""
    return f"$JS.SNAPSHOT.RESTORE.{stream}.>"


def remove_server() -> str:
    """Where the system account takes a server out of its cluster for good."""
    return f"{API}.SERVER.REMOVE"
