"""What runs have spent on models: added up by provider and model, and said for people and programs."""

from collections.abc import Iterable
from typing import Any, Final

from tsuzuki.facts import Spent

_NUMBERS: Final = ("requests", "cached", "unpriced", "input", "output", "cost", "uncertain")
_SMALLEST: Final = 0.000001
_EXACT: Final = 10
"""Dollars are told with so many decimals: sums of floats have noise beyond."""


def added(spent: Iterable[Spent]) -> tuple[Spent, ...]:
    """Adds up by provider and model, in the order in which these were first used."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for each in spent:
        total = sums.setdefault((each.provider, each.model), dict.fromkeys(_NUMBERS, 0))
        for name in _NUMBERS:
            total[name] += getattr(each, name)
    return tuple(Spent(provider, model, **total) for (provider, model), total in sums.items())


def usage(spent: Iterable[Spent]) -> dict[str, Any] | None:
    """Gives what was spent as plain JSON: the sums, and those of each model; None where no model was asked."""
    models = added(spent)
    if not models:
        return None
    return {**_sums(models), "models": [{"provider": m.provider, "model": m.model, **_sums([m])} for m in models]}


def _sums(spent: Iterable[Spent]) -> dict[str, Any]:
    """Gives sums under the names that people know; a cost of which nothing is known is None."""
    total: dict[str, Any] = {name: sum(getattr(each, name) for each in spent) for name in _NUMBERS}
    known = not total["unpriced"] or total["requests"] - total["cached"] > total["unpriced"]
    return {
        "requests": total["requests"],
        "cached": total["cached"],
        "unpriced": total["unpriced"],
        "uncertain": total["uncertain"],
        "input_tokens": total["input"],
        "output_tokens": total["output"],
        "cost": round(float(total["cost"]), _EXACT) if known else None,
    }


def told(sums: dict[str, Any]) -> str:
    """Says sums in a line: 12 requests, 1,200 tokens in, 300 out, $0.0012."""
    parts = [f"{sums['requests']:,} request{'' if sums['requests'] == 1 else 's'}"]
    parts += [f"{sums['cached']:,} from the cache"] if sums["cached"] else []
    parts += [f"{sums['input_tokens']:,} tokens in", f"{sums['output_tokens']:,} out"]
    parts += [] if sums["cost"] is None else [dollars(sums["cost"])]
    unpriced = sums["unpriced"] - sums["uncertain"]
    parts += [f"{unpriced:,} without a known price"] if unpriced else []
    parts += [f"{sums['uncertain']:,} without an answer that may have been charged"] if sums["uncertain"] else []
    return ", ".join(parts)


def dollars(amount: float) -> str:
    """Says an amount: with more decimals where it is small, and whatever the order in which it was added up."""
    amount = round(amount, 12)
    if amount >= 1 or not amount:
        return f"${amount:,.2f}"
    if amount < _SMALLEST:
        return f"less than ${_SMALLEST:.6f}"
    cents, more = f"{amount:.6f}"[:4], f"{amount:.6f}"[4:]
    return f"${cents}{more.rstrip('0')}"
