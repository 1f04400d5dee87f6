"""Documents that are too large lose what is largest, say so, and lose nothing else."""

from typing import Any

import msgspec
import pytest

from tsuzuki.gateway.fitting import fitted

MOST = 10_000


def document(params: Any, result: Any = None) -> dict[str, Any]:
    return {
        "run_id": "x",
        "params": msgspec.Raw(msgspec.json.encode(params)),
        "result": None if result is None else msgspec.Raw(msgspec.json.encode(result)),
    }


@pytest.mark.parametrize(
    ("params", "result", "lost"),
    [
        ({"a": 1}, "r" * 5000, set()),
        ({"a": "p" * 4000}, "r" * 5900, set()),
        ({"a": "p" * 4000}, "r" * 9000, {"result"}),
        ({"a": "p" * 9000, "b": 2}, "r" * 3000, {"params"}),
        ({"a": "p" * 90_000, "b": "q" * 9000, "c": 3}, "r" * 9000, {"params", "result"}),
        ({f"n{number}": number for number in range(5000)}, None, {"params"}),
        ({"k" * 20_000: 1}, None, {"params"}),
    ],
)
def test_what_is_too_large_is_left_out_and_named(params: dict[str, Any], result: Any, lost: set[str]) -> None:
    changes = fitted(document(params, result), MOST)
    assert {name.removesuffix("_truncated") for name in changes} == lost
    assert len(msgspec.json.encode(document(params, result) | changes)) <= MOST + 200
    kept = msgspec.json.decode(msgspec.json.encode(changes.get("params", params)))
    assert all(value == params[name] or "bytes left out" in value for name, value in kept.items())
    if "b" in params:
        assert kept["b"] == params["b"] or len(str(params["b"])) > 8000
