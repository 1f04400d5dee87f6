"""`tsuzuki commits …`: connect, list projects, collect, go on with everything, and look at what came of it."""

import click

from tsuzuki.apps.commits.bulk_commands import bulk, cancel, history, retry, status
from tsuzuki.apps.commits.collect_commands import collect, connect, projects
from tsuzuki.apps.commits.stats_command import stats


@click.group(short_help="Collect commits, and sum them up.")
def commits() -> None:
    """Collect the commits of every branch, go on tomorrow where it was, and sum them up by month and author.

    \b
      tsuzuki commits collect --git .          the branch that is checked out here
      tsuzuki commits bulk                     go on with every branch that was collected once
      tsuzuki commits stats --plot             by month and author, as a picture too
    """  # noqa: D301 - click reads \b as: keep these lines


for command in (connect, projects, collect, bulk, retry, cancel, status, history, stats):
    commits.add_command(command)
