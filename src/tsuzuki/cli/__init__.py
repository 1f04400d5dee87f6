"""The command line: looks at runs, starts them and asks things of them, through the use cases of `tsuzuki.runs`."""

from tsuzuki.cli.program import main

__all__ = ["main"]
