"""What the log of a worker says when a run has left it."""

import logging
from typing import Final

from tsuzuki import facts as f
from tsuzuki.errors import ClaimLost, StoreError
from tsuzuki.execution import Execution

logger: Final = logging.getLogger("tsuzuki.worker")

_WORDS: Final = {f.RunCompleted: "COMPLETED", f.RunCancelled: "CANCELLED", f.Released: "handed back"}
_EXECUTION: Final = "ERR-TSUZUKI-0007"
_BY_REASON: Final = {"flow_not_found": "ERR-TSUZUKI-0006", "invalid_job": "ERR-TSUZUKI-0012"}
_CANCEL_TOOK_TOO_LONG: Final = "ERR-TSUZUKI-0021"


def tell(run: Execution, error: BaseException | None) -> bool:
    """Says how a run left this worker; tells whether a fault made us drop it while it is still ours."""
    if error is None and type(run.ending) is f.RunCompleted and not logger.isEnabledFor(logging.INFO):
        return False  # most runs, and nobody to tell
    row = run.claim.run
    about = {"run_id": row.id, "flow_name": row.flow, "tag": row.tag, "worker_id": run.claim.worker}
    if error is None:
        _tell_ending(run, about)
        return False
    if isinstance(error, ClaimLost):
        logger.warning("run %s: %s", row.number, error, extra=about)
        return False
    if isinstance(error, StoreError):
        logger.error("run %s stopped: %s", row.number, error, extra={**about, "err_id": error.error_id})
    else:
        logger.error("run %s stopped: a fault of ours", row.number, exc_info=error, extra=about)
    return True


def _tell_ending(run: Execution, about: dict[str, str]) -> None:
    row, ending = run.claim.run, run.ending
    if run.given_up and run.stopping == "cancel":
        late = "run %s of %s did not stop within the grace period: its end is recorded without it"
        logger.error(late, row.number, row.flow, extra={**about, "err_id": _CANCEL_TOOK_TOO_LONG})
    if isinstance(ending, f.RunFailed):
        more = {"reason": ending.reason, "err_id": _BY_REASON.get(ending.reason, _EXECUTION)}
        said = f"{ending.error.type}: {ending.error.message}"
        text = "run %s of %s is FAILED: %s"
        logger.error(text, row.number, row.flow, said, exc_info=run.failure, extra={**about, **more})
    elif ending is not None:
        logger.info("run %s of %s is %s", row.number, row.flow, _WORDS.get(type(ending), "over"), extra=about)
