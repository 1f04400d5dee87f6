"""Passwords that programs take on their command line by a short option: `mysql -psecret`, `docker login -p secret`.

`-p` means something else to nearly everybody else, so a command has to stand before it.
"""

import re
from collections.abc import Sequence
from typing import Final

_HIDDEN: Final = "***"
_OPTIONS: Final = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow", "mysqlsh"), "-p"),
    **dict.fromkeys(("mariadb", "mariadb-dump", "mariadb-admin", "mongo", "mongosh", "mongodump", "sshpass"), "-p"),
    **dict.fromkeys(("mongorestore", "mongoimport", "mongoexport"), "-p"),
    **dict.fromkeys(("docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "az", "oc"), "-p"),
    **dict.fromkeys(("sqlcmd", "bcp"), "-P"),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami"), "-w"),
    "redis-cli": "-a",
}
_WITH_LOGIN: Final = frozenset({"docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "az", "oc"})
"""Those for which the option means a password only after `login`."""
_ALONE: Final = "|".join(sorted((name for name in _OPTIONS if name not in _WITH_LOGIN), key=len, reverse=True))
_COMMAND: Final = re.compile(
    rf"(?<![\w-])(?:(?P<alone>{_ALONE})|(?P<login>{'|'.join(sorted(_WITH_LOGIN))})['\",\s]{{1,5}}(?:registry\s)?login)"
    r"(?=['\"\s])(?P<rest>(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|[^\n;|&'\"]|['\"]){0,600}+)"
)
WORDS: Final = ("mysql", "mariadb", "mongo", "sshpass", "login", "redis-cli", "sqlcmd", "bcp ", "bcp'", 'bcp"', "ldap")
"""One of these is in every such command line."""
_VALUE: Final = r"(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|[^\s'\",\]\\]{1,200})"
_GIVEN: Final = {
    option: re.compile(
        rf"((?<=[\s'\"]){option}(?:\\?['\"]?[,\s]{{1,3}}\\?['\"]?(?!-)(?!\w{{1,40}}=)|(?=[^\s,\\])(?!['\"][,\s\]])))({_VALUE})"
    )
    for option in set(_OPTIONS.values())
}
"""An option and its value, apart or in one; `name=value` apart is a param of somebody's run."""


def without_passwords(text: str) -> str:
    """Gives a text with the passwords of such commands hidden."""
    return _COMMAND.sub(_told, text) if any(map(text.__contains__, WORDS)) else text


def _told(found: re.Match[str]) -> str:
    option = _OPTIONS[found["alone"] or found["login"]]
    said, rest = found[0], found["rest"]
    return said[: len(said) - len(rest)] + _GIVEN[option].sub(rf"\1{_HIDDEN}", rest)


def password_option(parts: Sequence[object]) -> str:
    """Gives the option after which a command, in its parts, takes a password; nothing where it takes none."""
    first = parts[0] if parts and isinstance(parts[0], str) else ""
    name = first.rpartition("/")[2]
    return "" if name in _WITH_LOGIN and "login" not in parts[1:3] else _OPTIONS.get(name, "")
