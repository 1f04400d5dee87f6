"""Every error Tsuzuki raises, each knowing its error id, its HTTP status and its exit code.

TsuzukiError
├── BadRequest            what was asked cannot be understood: nothing was changed
│   ├── BadParams         the params do not fit the flow
│   ├── FlowNotFound      nobody here knows a flow of that name
│   ├── DuplicateItem     two items of one map have the same key
│   ├── NotJSON           a value cannot be recorded as JSON
│   ├── ValueChanged      a recorded value no longer fits its annotation
│   ├── NameTaken         two different tasks in one run share a name
│   ├── NotAwaited        async code called a task without awaiting it
│   ├── BadWorkflow       a YAML flow says something that it may not say
│   │   └── WorkflowTooLarge  it has too many bytes
│   ├── BadCallable       a YAML flow names a function that is not there, or not allowed here
│   ├── BadListQuery      a list of runs was asked for in a way that makes no sense
│   ├── BadWorkersRequest  workers were asked for, or changed, in a way that makes no sense
│   ├── TooLarge          what was sent is larger than what is taken
│   └── BadUsage          an argument, option or call that makes no sense
│       └── BadTag        a tag that is none
├── RunNotFound           there is no such run
│   ├── ItemNotFound      the run has no such step or item
│   └── LetterNotFound    there is no such dead letter
├── WorkerNotFound        there is no such worker
├── KeyRequired           an API key is needed, and none was sent
├── KeyRefused            the API key is malformed, unknown, wrong or revoked
│   └── RightMissing      the API key holds, but does not have the right that is needed
├── TooBusy               as many stay connected already as may
├── Conflict              it would break a rule: nothing was changed
│   ├── KeyHeld           another active run holds the key
│   ├── MoveRefused       the run's status does not allow it
│   ├── RunHeld           a living process is executing the run
│   └── PlaceTaken        something is there already, and would be overwritten
├── StoreError            the store cannot do its work
│   ├── StoreUnavailable  it cannot be reached, written or extended just now
│   │   └── StoreClosed   it was closed in this process
│   ├── NotAStore         the file is corrupt or is not ours
│   ├── NewerStore        a newer Tsuzuki wrote it
│   └── NotABackup        a backup is missing, cut off, damaged or of another kind
├── ClaimLost             somebody else holds the run now: this worker must stop
├── StepFailure           a task failed for good, its retries used up
│   └── ItemsFailure      items of a map failed for good
├── LLMError              a language model gave no answer that can be used
│   ├── ProviderUnavailable  it cannot be reached or is overloaded, also after several tries
│   │   └── ProviderUnclear  whether it took what was sent is not known
│   ├── ProviderRefused   it will not answer this, also when it is asked again
│   ├── BadAnswer         its answer was cut off, or does not fit what was asked for
│   └── NoRule            the offline provider knows nothing of such a question
└── RunEnded              a run that was waited for ended without a result
    ├── RunFailure        it failed
    ├── RunStopped        it was cancelled
    └── RunInterrupted    it was stopped on the way and can go on
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar


class TsuzukiError(Exception):
    """Something went wrong in Tsuzuki."""

    error_id: ClassVar[str] = "ERR-TSUZUKI-0001"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])


class BadRequest(TsuzukiError):
    """What was asked cannot be understood; nothing was changed."""

    error_id = "ERR-TSUZUKI-0002"
    http_status = 422

    def __init__(self, message: str | None = None, problems: Sequence[Mapping[str, object]] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
        """What is wrong part by part, where that is known: `type`, `loc` and `msg` of each."""


class BadParams(BadRequest):
    """The params do not fit the flow."""


class FlowNotFound(BadRequest):
    """No flow of that name is known here."""

    error_id = "ERR-TSUZUKI-0006"
    http_status = 404


class DuplicateItem(BadRequest):
    """Two items of one map have the same key."""

    error_id = "ERR-TSUZUKI-0101"


class NotJSON(BadRequest):
    """A value cannot be recorded as JSON."""

    error_id = "ERR-TSUZUKI-0102"


class ValueChanged(BadRequest):
    """A recorded value no longer fits its annotation."""

    error_id = "ERR-TSUZUKI-0103"


class NameTaken(BadRequest):
    """Two different tasks in one run share a name."""

    error_id = "ERR-TSUZUKI-0104"


class NotAwaited(BadRequest):
    """Async code called a task without awaiting it, so the task did not run."""

    error_id = "ERR-TSUZUKI-0109"


class BadWorkflow(BadRequest):
    """invalid workflow yaml"""

    def __init__(
        self,
        message: str | None = None,
        problems: Sequence[Mapping[str, object]] = (),
        *,
        line: int = 1,
        column: int = 1,
    ) -> None:
        super().__init__(message, problems)
        self.line = line
        self.column = column


class WorkflowTooLarge(BadWorkflow):
    """workflow too large"""

    error_id = "ERR-TSUZUKI-0016"
    http_status = 413


class BadCallable(BadRequest):
    """A YAML flow names a function that is not there, or not allowed here."""

    error_id = "ERR-TSUZUKI-0105"


class BadUsage(BadRequest):
    """That call or argument makes no sense."""

    error_id = "ERR-TSUZUKI-0018"


class BadTag(BadUsage, ValueError):
    """A tag has letters, digits, _ and - only."""


class BadListQuery(BadRequest):
    """The list of runs was asked for in a way that makes no sense."""

    error_id = "ERR-TSUZUKI-0017"


class BadWorkersRequest(BadRequest):
    """Workers were asked for, or changed, in a way that makes no sense."""

    error_id = "ERR-TSUZUKI-0019"


class TooLarge(BadRequest):
    """What was sent is larger than what is taken."""

    http_status = 413


class RunNotFound(TsuzukiError):
    """There is no such run."""

    error_id = "ERR-TSUZUKI-0005"
    http_status = 404


class ItemNotFound(RunNotFound):
    """The run has no such step or item."""


class LetterNotFound(RunNotFound):
    """There is no such dead letter."""


class WorkerNotFound(TsuzukiError):
    """There is no such worker."""

    error_id = "ERR-TSUZUKI-0020"
    http_status = 404


class KeyRequired(TsuzukiError):
    """An API key is needed, and none was sent."""

    error_id = "ERR-TSUZUKI-0014"
    http_status = 401


class KeyRefused(TsuzukiError):
    """The API key is malformed, unknown, wrong or revoked."""

    error_id = "ERR-TSUZUKI-0015"
    http_status = 403


class RightMissing(KeyRefused):
    """This API key may not do that."""


class TooBusy(TsuzukiError):
    """As many stay connected already as may; try again soon."""

    error_id = "ERR-TSUZUKI-0122"
    http_status = 503


class Conflict(TsuzukiError):
    """It would break a rule; nothing was changed."""

    error_id = "ERR-TSUZUKI-0110"
    http_status = 409


class KeyHeld(Conflict):
    """Another active run holds the key."""

    error_id = "ERR-TSUZUKI-0111"

    def __init__(self, message: str | None = None, run_id: str = "") -> None:
        super().__init__(message)
        self.run_id = run_id


class MoveRefused(Conflict):
    """The run's status does not allow it."""

    error_id = "ERR-TSUZUKI-0112"


class RunHeld(Conflict):
    """A living process is executing the run."""

    error_id = "ERR-TSUZUKI-0113"


class PlaceTaken(Conflict):
    """Something is there already; nothing was overwritten."""

    error_id = "ERR-TSUZUKI-0124"


class StoreError(TsuzukiError):
    """The store cannot do its work."""

    error_id = "ERR-TSUZUKI-0003"
    http_status = 503

    def __init__(self, message: str | None = None, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice
        """What is wrong and what to do, without the names of files and hosts: for those who are not on that machine."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, written or extended just now."""

    passing: bool = False
    """Whether somebody was reached who had no answer yet, as servers that choose a leader: ask again in a moment."""


class StoreClosed(StoreUnavailable):
    """The store was closed in this process; open it again."""


class NotAStore(StoreError):
    """The file is corrupt or is not a Tsuzuki store."""

    error_id = "ERR-TSUZUKI-0120"


class NewerStore(StoreError):
    """A newer Tsuzuki wrote this store."""

    error_id = "ERR-TSUZUKI-0121"


class NotABackup(StoreError):
    """That is no whole backup."""

    error_id = "ERR-TSUZUKI-0123"


class ClaimLost(TsuzukiError):
    """Somebody else holds the run now; this worker stops working on it."""

    error_id = "ERR-TSUZUKI-0130"
    http_status = 409


class StepFailure(TsuzukiError):
    """A task failed for good, its retries used up."""

    error_id = "ERR-TSUZUKI-0140"
    exit_code = 5
    cost: float | None = None
    """What it has spent on models in all its tries (US dollars); None where that is nothing, or not known."""

    def __init__(
        self, message: str | None = None, *, task: str = "", key: str = "", error_type: str = "", tries: int = 0
    ) -> None:
        super().__init__(message)
        self.task = task
        self.key = key
        self.error_type = error_type
        self.tries = tries


class ItemsFailure(StepFailure):
    """Items of a map failed for good."""


class LLMError(TsuzukiError):
    """A language model gave no answer that can be used."""

    error_id = "ERR-TSUZUKI-0160"
    http_status = 502
    reply: object = None
    """The last answer that was given all the same, with what all tries took: it is paid for."""
    journal_detail: str = ""
    """That reply as JSON, which is kept with the failure."""


class ProviderUnavailable(LLMError):
    """The provider cannot be reached or is overloaded."""

    error_id = "ERR-TSUZUKI-0161"
    http_status = 503


class ProviderUnclear(ProviderUnavailable):
    """Whether the provider took what was sent is not known."""


class ProviderTimeout(ProviderUnavailable):
    """The provider took a question and did not answer in time: it may have been charged, and is not sent again."""


class ProviderRefused(LLMError):
    """The provider will not answer this."""

    error_id = "ERR-TSUZUKI-0162"

    def __init__(self, message: str | None = None, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ProviderDenied(ProviderRefused):
    """The provider refuses the key or the account, and with it every question: see to that, then resume the run."""


class BadAnswer(LLMError):
    """The answer does not fit what was asked for."""

    error_id = "ERR-TSUZUKI-0163"


class NoRule(LLMError):
    """The offline provider has no rule for such a question."""

    error_id = "ERR-TSUZUKI-0164"
    http_status = 422


class RunEnded(TsuzukiError):
    """The run ended without a result."""

    error_id = "ERR-TSUZUKI-0150"
    http_status = 409

    def __init__(self, message: str | None = None, run_id: str = "") -> None:
        super().__init__(message)
        self.run_id = run_id


class RunFailure(RunEnded):
    """The run failed."""

    error_id = "ERR-TSUZUKI-0151"
    exit_code = 5


class RunStopped(RunEnded):
    """The run was cancelled."""

    error_id = "ERR-TSUZUKI-0152"
    exit_code = 7


class RunInterrupted(RunEnded, KeyboardInterrupt):
    """The run was stopped on the way; start it again to go on."""

    error_id = "ERR-TSUZUKI-0153"
    exit_code = 130
