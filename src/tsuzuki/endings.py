"""What the log of a worker says when a run has left it, or comes back as if its workers had not lived to tell."""

import logging
from typing import Any, Final

from tsuzuki import facts as f
from tsuzuki.backends import Claim
from tsuzuki.errors import ClaimLost, StepFailure, StoreError
from tsuzuki.execution import Execution
from tsuzuki.lifecycle import executed_alone
from tsuzuki.stumbles import Stumbles

logger: Final = logging.getLogger("tsuzuki.worker")

_WORDS: Final = {f.RunCompleted: "COMPLETED", f.RunCancelled: "CANCELLED", f.Released: "handed back"}
_EXECUTION: Final = "ERR-TSUZUKI-0007"
_BY_REASON: Final = {"flow_not_found": "ERR-TSUZUKI-0006", "invalid_job": "ERR-TSUZUKI-0012"}
_CANCEL_TOOK_TOO_LONG: Final = "ERR-TSUZUKI-0021"


def suspect(claim: Claim) -> None:
    """Names a run that was claimed before and recorded nothing since: what ended its worker may end this one, too."""
    row = claim.run
    if row.barren > 1:
        about = {"run_id": row.id, "flow_name": row.flow, "tag": row.tag, "worker_id": claim.worker}
        text = "run %s of %s was claimed %s times in a row without a new outcome: perhaps it ends its workers%s"
        alone = ". No other run is executed beside it" if executed_alone(row) else ""
        logger.warning(text, row.number, row.flow, row.barren, alone, extra=about)


def tell(run: Execution, error: BaseException | None, stumbles: Stumbles) -> None:
    """Says how a run left this worker; one that a fault has stopped while it is still ours goes on later."""
    row = run.claim.run
    if error is None or isinstance(error, ClaimLost):
        stumbles.forget(row.id)
    if error is None and type(run.ending) is f.RunCompleted and not logger.isEnabledFor(logging.INFO):
        return  # most runs, and nobody to tell
    about = {"run_id": row.id, "flow_name": row.flow, "tag": row.tag, "worker_id": run.claim.worker}
    if error is None:
        _tell_ending(run, about)
    elif isinstance(error, ClaimLost):
        logger.warning("run %s: %s", row.number, error, extra=about)
    else:
        pause = stumbles.note(run.claim, run.clock.monotonic())
        if isinstance(error, StoreError):
            text = "run %s stopped, and goes on in %g s: %s"
            logger.error(text, row.number, pause, error, exc_info=error, extra={**about, "err_id": error.error_id})
        else:
            text = "run %s stopped, and goes on in %g s: a fault of ours"
            logger.error(text, row.number, pause, exc_info=error, extra=about)


def _original(error: BaseException | None) -> BaseException | None:
    """Gives what the flow's own code raised first: a failed step tells of it in words that are ours."""
    while isinstance(error, StepFailure) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _tell_ending(run: Execution, about: dict[str, str]) -> None:
    row, ending = run.claim.run, run.ending
    if (run.given_up or run.overdue) and run.stopping == "cancel":
        late = "run %s of %s did not stop within the grace period: its end is recorded without it"
        timeout = f.Problem("TimeoutError", "the grace period is over").logged
        logger.error(late, row.number, row.flow, extra={**about, "err_id": _CANCEL_TOOK_TOO_LONG, "details": timeout})
    if isinstance(ending, f.RunFailed):
        more: dict[str, Any] = {"reason": ending.reason, "err_id": _BY_REASON.get(ending.reason, _EXECUTION)}
        if (failure := _original(run.failure)) is None:
            more["details"] = ending.error.logged
        text = "run %s of %s is FAILED: %s"
        logger.error(text, row.number, row.flow, ending.error.said, exc_info=failure, extra={**about, **more})
    elif ending is not None:
        logger.info("run %s of %s is %s", row.number, row.flow, _WORDS.get(type(ending), "over"), extra=about)
