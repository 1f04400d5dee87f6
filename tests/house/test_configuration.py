"""docs/configuration.md says what settings.py says."""

from tests.house.configuration import PAGE, page


def test_the_page_about_configuration_is_made_of_the_table() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.house.configuration"
