"""The pages in a real Chromium: with the tools of the dashboard's own tests."""

from tests.apps.notes.conftest import model
from tests.dashboard.conftest import opened, own_scene, pytest_pyfunc_call, stage

__all__ = ["model", "opened", "own_scene", "pytest_pyfunc_call", "stage"]
