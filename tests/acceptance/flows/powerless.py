"""A flow run by somebody for whom file permissions hold, also when it is root: `powerless.py`."""

import ctypes
import os
import sys

from tests.acceptance.flows.calls import tell
from tsuzuki import TsuzukiError, flow

DROP_FROM_BOUNDING_SET = 24
OVERRIDE_PERMISSIONS = 1


@flow
def nothing() -> str:
    return "done"


if __name__ == "__main__":
    if os.getuid() == 0 and len(sys.argv) == 1:
        assert ctypes.CDLL(None).prctl(DROP_FROM_BOUNDING_SET, OVERRIDE_PERMISSIONS, 0, 0, 0) == 0
        os.execv(sys.executable, [sys.executable, "-m", "tests.acceptance.flows.powerless", "again"])  # noqa: S606 - ourselves
    try:
        tell(nothing.run().result)
    except TsuzukiError as error:
        tell(f"{type(error).__name__}: {error}")
        sys.exit(error.exit_code)
