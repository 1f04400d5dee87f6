"""Plain functions, no async: every file of a folder is read once, four at a time.

tsuzuki run examples/digests.py -p folder=bench
python examples/digests.py
"""

import hashlib
import time
from pathlib import Path

from tsuzuki import flow, task


@task(retry=3)
def digest(path: str) -> str:
    time.sleep(0.1)  # the work
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


@flow
def digests(folder: str = str(Path(__file__).parent), pattern: str = "*.py") -> dict[str, str]:
    paths = sorted(str(path) for path in Path(folder).glob(pattern))
    return dict(zip(paths, digest.map(paths, concurrency=4), strict=True))


if __name__ == "__main__":
    for name, value in digests.run().result.items():
        print(value, name)
