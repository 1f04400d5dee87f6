"""The routes of this application, as they stand under `/api/projects` and `/api/ollama`."""

from fastapi import APIRouter

from tsuzuki.apps.glossary.routes import files, models, results, runs, terms
from tsuzuki.apps.glossary.routes import projects as one

__all__ = ["ollama", "projects"]


def projects() -> APIRouter:
    """Gives what stands under `/api/projects`."""
    router = APIRouter()
    for part in (one.router, files.router, terms.router, results.router, runs.router):
        router.routes.extend(part.routes)
    return router


def ollama() -> APIRouter:
    """Gives what stands under `/api/ollama`."""
    return models.router
