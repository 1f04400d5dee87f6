"""A flow with a key that waits for the file `go`: `keyed.py NUMBER`."""

import sys

from tests.acceptance.flows.calls import called, tell
from tests.acceptance.flows.catalog import wait_for
from tsuzuki import flow
from tsuzuki.errors import KeyHeld


@flow(key="the only one")
def alone(number: int) -> int:
    called("alone", number)
    wait_for("go")
    return number


if __name__ == "__main__":
    try:
        tell(alone.run(number=int(sys.argv[1])).result)
    except KeyHeld as error:
        tell(str(error))
        sys.exit(error.exit_code)
