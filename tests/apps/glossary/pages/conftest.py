"""The pages in a real Chromium: with the tools of the dashboard's own tests."""

from tests.dashboard.conftest import opened, own_scene, pytest_pyfunc_call, stage

__all__ = ["opened", "own_scene", "pytest_pyfunc_call", "stage"]
