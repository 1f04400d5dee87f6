"""Who may speak to a NATS server, made for one test: certificates of an own authority, nkeys, and signed tokens."""

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import nkeys  # type: ignore[import-untyped]  # it says nothing of its types
import trustme

OPERATOR, ACCOUNT, USER = nkeys.PREFIX_BYTE_OPERATOR, nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_USER
UNLIMITED = -1


class Certificates:
    """An authority, the certificate of a server on the loopback, and that of a client."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        authority = trustme.CA()
        self.ca = folder / "ca.pem"
        authority.cert_pem.write_to_path(str(self.ca))
        self.server = self._issue(authority, folder / "server.pem", "127.0.0.1")
        self.client = self._issue(authority, folder / "client.pem", "client")

    @staticmethod
    def _issue(authority: trustme.CA, path: Path, name: str) -> Path:
        """Writes a key and its certificate into one file."""
        authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(str(path))
        return path

    def settings(self, *, verify: bool = False) -> str:
        """What a server's configuration says of them."""
        files = f'cert_file: "{self.server}", key_file: "{self.server}", ca_file: "{self.ca}"'
        return f"tls {{ {files}, verify: {str(verify).lower()} }}"


class Key:
    """A pair of keys as NATS writes them."""

    def __init__(self, kind: int) -> None:
        self.seed: bytes = nkeys.encode_seed(os.urandom(32), kind)
        self._pair = nkeys.from_seed(bytearray(self.seed))
        self.public: str = self._pair.public_key.decode()

    def sign(self, claims: dict[str, Any]) -> str:
        """Signs claims, as a token that servers and clients hand around."""
        parts = [_encoded(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, claims)]
        return ".".join([*parts, _encoded(self._pair.sign(".".join(parts).encode()))])


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Operator:
    """Somebody who lets accounts in, one with JetStream and one without; accounts let users in."""

    def __init__(self) -> None:
        self._key = Key(OPERATOR)
        self.accounts = {name: Key(ACCOUNT) for name in ("system", "with", "without")}

    def settings(self) -> str:
        operator = _claims(self._key, self._key, {"type": "operator"})
        preloaded = "\n".join(f"{key.public}: {self._account(name)}" for name, key in self.accounts.items())
        system = self.accounts["system"].public
        return (
            f"operator: {operator}\nsystem_account: {system}\nresolver: MEMORY\nresolver_preload: {{\n{preloaded}\n}}"
        )

    def _account(self, name: str) -> str:
        room = UNLIMITED if name == "with" else 0
        everything = ("subs", "data", "payload", "imports", "exports", "conn", "leaf", "streams", "consumer")
        limits = dict.fromkeys(everything, UNLIMITED) | {"wildcards": True}
        limits |= {"mem_storage": room, "disk_storage": room}
        return _claims(self._key, self.accounts[name], {"type": "account", "limits": limits})

    def creds(self, path: Path, account: str = "with", *, seconds: float | None = None, by: Key | None = None) -> Path:
        """Writes the file of a user, who is let in for so long."""
        user = Key(USER)
        told = {"type": "user", "subs": UNLIMITED, "data": UNLIMITED, "payload": UNLIMITED}
        token = _claims(by or self.accounts[account], user, told, seconds=seconds)
        path.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
        )
        return path


def _claims(issuer: Key, subject: Key, about: dict[str, Any], seconds: float | None = None) -> str:
    now = int(time.time())
    claims = {"jti": os.urandom(8).hex(), "iat": now, "iss": issuer.public, "sub": subject.public, "name": "test"}
    if seconds is not None:
        claims["exp"] = int(now + seconds)
    return issuer.sign(claims | {"nats": {**about, "version": 2}})
