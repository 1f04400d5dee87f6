"""What is made of code, the pages and a module: `make docs` (`python -m tests.house.references`) writes it all."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.house import (
    configuration,
    reference_cli,
    reference_errors,
    reference_http,
    reference_lifecycle,
    waiting_client,
)

DOCS = Path(__file__).parents[2] / "docs"

PAGES: Mapping[Path, Callable[[], str]] = {
    configuration.PAGE: configuration.page,
    DOCS / "reference/http.md": reference_http.page,
    DOCS / "reference/cli.md": reference_cli.page,
    DOCS / "reference/lifecycle.md": reference_lifecycle.page,
    DOCS / "reference/errors.md": reference_errors.page,
    waiting_client.PAGE: waiting_client.page,
}


if __name__ == "__main__":
    for place, page in PAGES.items():
        place.write_text(page())
