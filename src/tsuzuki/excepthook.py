"""How a script shows an error that nothing catches: without our frames, and Ctrl-C as one line.

What this module imports is there when Python starts, so that Ctrl-C can come as early as it likes.
"""

import sys
from itertools import takewhile

TYPE_CHECKING = False  # type checkers know the name; `typing` itself takes its time to load
if TYPE_CHECKING:
    from types import TracebackType

_OURS = __file__.removesuffix("excepthook.py")
_plain: BaseException | None = None
"""The error that is shown without our frames, unless the script catches it."""


def show_plainly(error: BaseException) -> None:
    """Have an error shown without our frames if nothing catches it; an exception hook of others is left alone."""
    global _plain  # noqa: PLW0603 - the interpreter has one hook, and one error that ends it
    _plain = error
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    if error is not _plain:
        sys.__excepthook__(kind, error, trace)
    elif isinstance(error, KeyboardInterrupt):  # the interpreter itself then ends as Ctrl-C ends a program: 130
        sys.stderr.write(f"{error}\n" if error.args else "interrupted\n")
    else:
        sys.stderr.write(_without_our_frames(kind, error, trace))


def _without_our_frames(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> str:
    from traceback import StackSummary, TracebackException  # noqa: PLC0415 - see the top

    told = TracebackException(kind, error, trace)
    theirs = list(takewhile(lambda frame: not frame.filename.startswith(_OURS), told.stack))
    told.stack = StackSummary.from_list(theirs)
    told.__cause__ = told.__context__ = None
    told.__suppress_context__ = True
    return "".join(told.format())
