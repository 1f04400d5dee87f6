"""Files and folders that only their owner can read: a store holds whatever runs were given and have returned.

What is there already keeps the rights that somebody gave it.
"""

from pathlib import Path


def make_folder(path: Path) -> None:
    """Makes a folder, where it is missing, and those above it: who may write there could put another in its place."""
    if not path.exists() and not path.parent.exists():
        make_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> None:
    """Makes an empty file, where it is missing, and its folder."""
    make_folder(path.parent)
    if not path.exists():
        path.touch(mode=0o600)
