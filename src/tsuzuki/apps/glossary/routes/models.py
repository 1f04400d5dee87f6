"""`/api/ollama/models`: which models an Ollama server on this machine has."""

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Query

from tsuzuki import llm
from tsuzuki.apps.glossary.addresses import checked_ollama
from tsuzuki.apps.glossary.refusals import ModelUnavailable
from tsuzuki.apps.glossary.routes.shared import PROBLEM, Shape, Visiting
from tsuzuki.errors import LLMError

router: Final = APIRouter()
WAIT: Final = 3.0
"""How long its answer is waited for (seconds)."""


class Models(Shape):
    """Names of models."""

    models: list[str]
    """The names of the models."""


@router.get(
    "/models",
    summary="List the models of an Ollama server",
    responses={503: {"description": "It cannot be reached", "content": PROBLEM}},
)
async def list_models(visit: Visiting, base_url: Annotated[str, Query(max_length=1000)] = "") -> Models:
    """Lists models; only a server on this machine is asked."""
    del visit
    provider = llm.opened(llm.Address("ollama", checked_ollama(base_url)), watched=True)
    try:
        async with asyncio.timeout(WAIT):
            return Models(models=await provider.models())
    except (LLMError, TimeoutError) as error:
        raise ModelUnavailable(
            "Ollama に接続できません / the Ollama server cannot be reached: start it with `ollama serve`"
        ) from error
    finally:
        await provider.close()
