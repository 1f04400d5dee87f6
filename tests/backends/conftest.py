"""Lets the assertions of the shared contract explain themselves when they fail."""

import pytest

pytest.register_assert_rewrite("tsuzuki.testing.builders", "tsuzuki.testing.contract")
