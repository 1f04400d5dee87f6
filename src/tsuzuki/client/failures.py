"""What goes wrong between a client and the gateway."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import msgspec

from tsuzuki.errors import TsuzukiError

PASSING: tuple[int, ...] = (502, 503, 504)
"""Answers that may be another one in a moment."""


class HTTPStatusError(TsuzukiError):
    """The gateway answered with an error."""

    def __init__(
        self,
        status_code: int,
        detail: str,
        problem: Mapping[str, Any],
        url: str = "",
        response: httpx2.Response | None = None,
    ) -> None:
        self.errors: Sequence[Mapping[str, Any]] = problem.get("errors") or ()
        transport = "" if problem else f" (HTTP {status_code})"  # only an answer that is not the gateway's own needs it
        super().__init__(f"{_told(detail, self.errors)}{transport}")
        self.status_code = status_code
        self.detail = detail
        self.error_id = str(problem.get("error_id") or type(self).error_id)  # type: ignore[misc] # the gateway's own
        self.problem = problem
        self.url = url
        self.response = response
        """The whole answer, as clients of httpx know it from its error of this name."""


class ServerUnreachable(TsuzukiError):
    """The gateway cannot be reached."""

    error_id = "ERR-TSUZUKI-0003"
    http_status = 503


def failure(response: httpx2.Response) -> HTTPStatusError:
    """Makes the error that an answer tells of; its body has been read."""
    try:
        problem = msgspec.json.decode(response.content, type=dict[str, Any])
    except msgspec.MsgspecError:
        problem = {}
    detail = str(problem.get("detail") or response.reason_phrase or "the gateway refused")
    return HTTPStatusError(response.status_code, detail, problem, str(response.url), response)


def _told(detail: str, flaws: Sequence[Mapping[str, Any]]) -> str:
    """Adds what is wrong with each field, unless that is told already."""
    places = [f"{_place(flaw)}: {flaw.get('msg', '')}" for flaw in flaws if str(flaw.get("msg")) not in detail]
    return f"{detail}: {'; '.join(places)}" if places else detail


def _place(error: Mapping[str, Any]) -> str:
    if "line" in error:
        return f"line {error['line']}, column {error.get('column', 1)}"
    return ".".join(str(part) for part in error.get("loc", ()) if part != "body")


def unreachable(server: str, error: Exception) -> ServerUnreachable:
    """Says that nobody answers, and what to do."""
    why = str(error) or type(error).__name__
    return ServerUnreachable(
        f"the gateway at {server} cannot be reached: {why}; "
        "is it up (`tsuzuki up`)? --server or TSUZUKI_SERVER says where"
    )
