"""The command line as a module: `python -m tsuzuki.cli`."""

from tsuzuki.cli.program import main

main(prog_name="tsuzuki")
