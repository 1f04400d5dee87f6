"""Whether a run was left behind by its process, so that nobody will ever go on with it by itself."""

from typing import Final

from tsuzuki import Run, Runs

CLAIMING_WAIT: Final = 1.0
"""How long after it was resumed a run may be without a holder (seconds)."""


async def abandoned(runs: Runs, row: Run, *, patient: bool = True) -> bool:
    """Tells whether a run belongs to a process that has ended: no worker will ever take it.

    Who is not `patient` gives a process that is about to claim it no time for that.
    """
    if row.status.terminal or not row.private or await runs.holders.waiter(row) is not None:
        return False
    if row.holder is None:  # handed back; or resumed a moment ago, by a process that is about to claim it
        return not patient or runs.now() - row.updated_at > CLAIMING_WAIT
    return row.holder in await runs.holders.gone()
