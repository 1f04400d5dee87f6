"""What only some installations have: which extra brings a module, and what people are told where it is missing."""

from typing import Final

from tsuzuki.errors import BadUsage

BRINGS: Final = {
    "gateway": ("fastapi", "httptools", "prometheus_client", "python_multipart", "starlette", "uvicorn", "uvloop"),
    "ja": ("sudachidict_small", "sudachipy"),
    "llm": ("genai_prices",),
    "nats": ("nats", "nkeys"),
    "plot": ("resvg_py",),
}
"""The modules that each extra brings."""
_NEEDED_BY: Final = {"gateway": "the gateway", "nats": "NATS", "plot": "a PNG"}
"""What does not go without its extra; the others only do better with it."""


def missing(error: Exception) -> BadUsage | None:
    """Gives what to tell of an import that failed for want of an extra; None of every other error."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    module = (error.name or "").partition(".")[0]
    for extra, modules in BRINGS.items():
        if module in modules:
            return BadUsage(f"{_NEEDED_BY.get(extra, module)} needs the extra `{extra}`: {installing(extra)}")
    return None


def installing(extra: str) -> str:
    """Gives the command that brings an extra."""
    return f"pip install 'tsuzuki[{extra}]'"
