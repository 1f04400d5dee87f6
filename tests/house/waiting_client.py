"""The client that waits, made of the one that is awaited: the same methods, and `make docs` writes them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

CLIENT: Final = Path(__file__).parents[2] / "src/tsuzuki/client"
SOURCE: Final = CLIENT / "awaiting.py"
PAGE: Final = CLIENT / "waiting.py"

OPENING = '''"""The client for programs that wait: every call returns when it is done.

Made of awaiting.py by `python -m tests.house.references`; a test compares them.
"""
'''

SPOKEN: Final = {
    r"\Aimport asyncio$": "import time",
    r"`async with` it, or `aclose` it": "`with` it, or `close` it",
    r"\basyncio\.sleep\b": "time.sleep",
    r"\basync (?=def |with |for )": "",
    r"\bawait ": "",
    r"\bAsync(?=Client|BaseTransport|Iterator)": "",
    r"\b__a(?=enter__|exit__)": "__",
    r"\ba(?=close\b|read\b|iter_bytes\b)": "",
    r"^( +)for (\w+) in (.+):\n +yield \2$": r"\1yield from \3",
}
"""What is said otherwise where nobody awaits, one after the other."""


def page() -> str:
    """Gives the module as it should be."""
    text = SOURCE.read_text(encoding="utf-8").partition('"""\n\n')[2]
    for awaited, plain in SPOKEN.items():
        text = re.sub(awaited, plain, text, flags=re.MULTILINE)
    formatting = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PAGE), "-"]
    made = subprocess.run(formatting, input=f"{OPENING}\n{text}", capture_output=True, text=True, check=True)
    return made.stdout
