"""What this application refuses, in Japanese and English with what to do next; and how errors are told to people."""

import re
from typing import Final

from tsuzuki.errors import BadRequest, Conflict, TsuzukiError

LONGEST: Final = 1024
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]{0,20}://\S+", re.IGNORECASE)
_PATH: Final = re.compile(r"(?<![\w.:/~])(?:/[^\s'\":;,()<>]+){2,}/?|\b[A-Za-z]:\\[^\s'\"<>|]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def sanitised(text: str) -> str:
    """Gives a text that may be stored and shown: no paths of this machine, no control characters, not too long."""
    kept: list[str] = []
    at = 0
    for url in _URL.finditer(text):
        kept += [_PATH.sub("<path>", text[at : url.start()]), url[0]]
        at = url.end()
    kept.append(_PATH.sub("<path>", text[at:]))
    clean = _CONTROL.sub("", "".join(kept))
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…"


class NotThere(TsuzukiError):
    """There is no such thing in this project."""

    error_id = "ERR-TSUZUKI-0401"
    http_status = 404


class NoProject(NotThere):
    """プロジェクトが見つかりません / there is no such project."""


class NoRuns(NotThere):
    """No runs found"""


class Taken(Conflict):
    """It is there already."""

    error_id = "ERR-TSUZUKI-0402"


class RunActive(Conflict, RuntimeError):
    """A run of this project is active."""

    error_id = "ERR-TSUZUKI-0403"

    def __init__(self, message: str | None = None, run_id: int = 0) -> None:
        super().__init__(message)
        self.number = run_id


class Refused(BadRequest):
    """That is not taken."""

    error_id = "ERR-TSUZUKI-0404"
    http_status = 400


class BadFileName(Refused):
    """That is no name for a document."""

    error_id = "ERR-TSUZUKI-0405"


class BadValue(BadRequest, ValueError):
    """That value makes no sense."""

    error_id = "ERR-TSUZUKI-0406"


class ModelUnavailable(TsuzukiError):
    """The language model gave no answer."""

    error_id = "ERR-TSUZUKI-0407"
    http_status = 503


class DamagedProject(TsuzukiError):
    """The file of a project is damaged or missing."""

    error_id = "ERR-TSUZUKI-0408"
    http_status = 503

    def __init__(self, japanese: str, english: str) -> None:
        super().__init__(
            f"{japanese}。バックアップから復元するか、プロジェクトを削除してください / "
            f"{english}. Restore it from a backup, or delete the project"
        )


class PipelineCancelledException(Exception):
    """Raised when pipeline execution is cancelled by user request."""
