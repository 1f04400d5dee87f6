"""`tsuzuki glossary …`: make a glossary of a folder, look at it, and give it away."""

import click

from tsuzuki.apps.glossary.generate_command import generate
from tsuzuki.apps.glossary.look_commands import export_command, issues, refined, terms
from tsuzuki.apps.glossary.project_commands import projects


@click.group(short_help="Make a glossary out of documents.")
def glossary() -> None:
    """Make a glossary out of documents: terms, definitions, a review of the weak ones, a refined glossary.

    \b
      tsuzuki glossary generate -i docs -o glossary.md      everything, in this process
      tsuzuki glossary issues                               what the review found
      tsuzuki glossary export --format tbx -o glossary.tbx  for other tools
    """  # noqa: D301 - click reads \b as: keep these lines


for command in (generate, terms, issues, refined, export_command, projects):
    glossary.add_command(command)
