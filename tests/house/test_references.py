"""The pages that are made of code say what the code says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import reference_errors
from tests.house.references import PAGES
from tsuzuki.errors import StoreError

SHARED = {StoreError.error_id}
"""Whatever is asked and cannot be reached has one id, whether it is a store, a gateway or a controller."""


@pytest.mark.parametrize(("place", "page"), PAGES.items(), ids=lambda each: getattr(each, "stem", ""))
def test_a_page_made_of_code_is_not_stale(place: Path, page: Callable[[], str]) -> None:
    assert place.read_text() == page(), "write it anew: make docs"


def test_every_error_id_in_the_source_is_told_and_means_one_thing() -> None:
    kinds = reference_errors.by_id()
    assert reference_errors.ids_in_the_source() == kinds.keys() | reference_errors.TOLD_ELSEWHERE.keys()
    for number, classes in kinds.items():
        first = classes[0]
        assert number in SHARED or all(issubclass(one, first) for one in classes), (number, classes)
