"""The command line: looks at runs, starts them and asks things of them, through the use cases of `tsuzuki.runs`."""

from tsuzuki.excepthook import show_plainly

try:
    from tsuzuki.cli.program import main
except KeyboardInterrupt as early:
    show_plainly(early)
    raise

__all__ = ["main"]
