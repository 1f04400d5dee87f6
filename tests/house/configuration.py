"""The page about configuration, made of the table in defaults.py: `python -m tests.house.configuration` writes it."""

from collections.abc import Sequence
from pathlib import Path

from tsuzuki import defaults
from tsuzuki.defaults import Setting

PAGE = Path(__file__).parents[2] / "docs/configuration.md"

OPENING = """# Configuration

<!-- Made of the table in defaults.py by `python -m tests.house.configuration`; a test compares them. -->

What is given by a flag counts most, then the environment, then the `.env` file in the current folder, then the
default. `tsuzuki config` shows what holds and where it came from, secrets masked. A value that makes no sense is
told of in a warning with the default that holds instead; `--strict-config` of `config`, `up`,
`serve` and `worker` makes it an error.

Commands name on standard error the settings that the `.env` file decides, without their values. **An address in the
`.env` file of the current folder gets no secret from elsewhere**: a folder that somebody else made could otherwise have
`OPENAI_API_KEY` or `TSUZUKI_API_KEY` of your environment sent to its own server. Such a command is refused. The rule
holds for `TSUZUKI_SERVER` with `TSUZUKI_API_KEY`, `TSUZUKI_LLM_BASE_URL` with the key of the provider,
`TSUZUKI_GITLAB_URL` with `TSUZUKI_GITLAB_TOKEN`, and `TSUZUKI_BACKEND` and `TSUZUKI_NATS_URL` with the password, token,
credentials or nkey for NATS. Put the secret into the same file, set the address in the environment, or name the file
with `TSUZUKI_ENV_FILE=.env`: a file that you name is trusted.

The `.env` file has lines of `NAME=VALUE`, with comments, quotes and an optional `export`. Only the settings below are
read from it, and nothing of it is put into the environment of your flows: what they need there, put there yourself.
"""

ABOUT_NATS = """Names that are not set begin with the option `prefix` of the address, `tsuzuki` by default. Options
of an address (`nats://…?option=value`) count more than the environment. Streams that are there already are kept; one
whose settings would lose runs is refused by name. An option of an address that makes no sense is refused, and so are
two values that do not fit together."""

ABOUT_KEYS = """Under the names that the providers' own tools use. They are read from here alone, shown to their
provider alone, and never logged or recorded."""

SECTIONS = (
    ("The store", "", defaults.STORE),
    ("Workers and runs", "", defaults.WORKERS),
    ("Gateway, clients and logs", "", defaults.GATEWAY),
    (
        "NATS",
        ABOUT_NATS,
        defaults.NATS,
    ),
    ("Commits", "", defaults.COMMITS),
    ("Glossary", "", defaults.GLOSSARY),
    ("Notes", "", defaults.NOTES),
    (
        "Wheels",
        "How workers come by them is in [wheels.md](wheels.md). The options are those of a NATS address.",
        defaults.WHEELS,
    ),
    ("Language models", "", defaults.LLM),
    (
        "Keys of providers",
        ABOUT_KEYS,
        defaults.KEYS,
    ),
    (
        "Known, but without effect",
        "So that an environment made for another implementation of the same contract is not refused.",
        defaults.ACCEPTED,
    ),
)

CLOSING = """
More options of an address: `prefix`, `replicas`, `inbox`, `timeout`, `connect_timeout`, `ready_timeout`,
`patience`, `max_bytes`, `max_log_bytes`.

`ack_wait` and `max_ack_pending` belong to consumers that all workers share: whoever starts sets them anew for those it
works with, and says so once in a warning. Where it may not, it goes on with what they have.

A worker that is gone stays in sight for a day, as DISCONNECTED or STOPPED_GRACEFUL, unless it is hidden; one that holds
a run longer.
"""


def page() -> str:
    return OPENING + "".join(section(*each) for each in SECTIONS) + CLOSING


def section(title: str, text: str, rows: Sequence[Setting]) -> str:
    options = any(row.option for row in rows)
    head = (
        "| variable | option | means | default |\n|---|---|---|---|"
        if options
        else "| variable | means | default |\n|---|---|---|"
    )
    told = "\n".join(line(row, options=options) for row in rows)
    return f"\n## {title}\n\n{f'{text}{chr(10)}{chr(10)}' if text else ''}{head}\n{told}\n"


def line(row: Setting, *, options: bool) -> str:
    option = f" {f'`{row.option}`' if row.option else ''} |" if options else ""
    default = f"`{row.default}`" if row.default else row.otherwise
    return f"| `{row.name}` |{option} {row.means} | {default} |"


if __name__ == "__main__":
    PAGE.write_text(page())
