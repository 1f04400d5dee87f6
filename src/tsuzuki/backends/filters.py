"""What a list of runs filters by, for the stores that list with SQL, and what it leaves out."""

from typing import Any, Final

import msgspec

from tsuzuki.backends import Query

NO_PARAMS: Final = msgspec.Raw(b"{}")
"""The params of a row that was asked for without them."""
_ALWAYS: Final = 1e300
_COMPARED: Final = (
    "flow",
    "tag",
    "label",
    "key",
    "tenant",
    "private",
    "digest",
    "number",
    "workflow",
    "holder",
    "spent",
)


def filters(query: Query) -> dict[str, Any]:
    """Gives what a row is compared with, by the names that SQL has for it; None does not filter."""
    return {
        **{name: getattr(query, name) for name in _COMPARED},
        "failures": query.failures,
        "prefix": query.id_prefix or None,
        "text": None if query.text is None else query.text.lower(),
        "finished_before": query.finished_before,
        "updated_after": -_ALWAYS if query.updated_after is None else query.updated_after,
        "before": _ALWAYS if query.before is None else query.before[0],
    }
