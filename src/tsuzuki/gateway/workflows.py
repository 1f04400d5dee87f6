"""The route of YAML flows: a form with the text of a flow, which the run brings with it."""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator
from typing import Any, Final

from fastapi import APIRouter, Request
from python_multipart.exceptions import FormParserError
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.responses import Response

from tsuzuki import settings
from tsuzuki.codec import plain_params
from tsuzuki.errors import BadRequest, BadWorkflow, TooLarge, WorkflowTooLarge
from tsuzuki.gateway.answers import answer, body_of, problems
from tsuzuki.gateway.bodies import NOT_BLANK, TAG
from tsuzuki.gateway.forms import AROUND
from tsuzuki.gateway.models import Accepted
from tsuzuki.gateway.problems import Invalid
from tsuzuki.gateway.runs import IdempotencyKey, refuse_another
from tsuzuki.gateway.session import InSession
from tsuzuki.yamlflow import parse

router: Final = APIRouter(tags=["runs"])

FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["workflow", "flow_name"],
                    "properties": {
                        "workflow": {
                            "type": "string",
                            "minLength": 1,
                            "contentMediaType": "application/yaml",
                            "description": "The text of the flow, at most 262,144 bytes.",
                        },
                        "flow_name": {
                            "type": "string",
                            "minLength": 1,
                            "maxLength": 512,
                            "pattern": NOT_BLANK,
                            "description": "What the flow of this run is called.",
                        },
                        "tag": {
                            "type": "string",
                            "pattern": TAG.replace("+", "*"),
                            "description": "Routes the run; empty: the default tag.",
                        },
                    },
                },
                "example": {
                    "flow_name": "report",
                    "workflow": "flow:\n  graph: load >> count\ntasks:\n  load: {callable: 'lab:load'}\n"
                    "  count: {callable: 'lab:count'}\n",
                },
            }
        },
    }
}


@router.post(
    "/runs/yaml",
    summary="Start a run of a YAML flow",
    response_model=Accepted,
    responses=problems(409, 413),
    openapi_extra=FORM,
)
async def submit_yaml(request: Request, session: InSession, idempotency_key: IdempotencyKey = None) -> Response:
    """Accepts a run that brings its flow with it; its params are the `flow.defaults` of the text."""
    most = session.gateway.options.max_workflow_bytes
    form = await _form(request, most)
    try:
        text, name, tag = await _fields(form)
    finally:
        await form.close()
    if len(text) > most:
        raise WorkflowTooLarge
    try:
        workflow = await asyncio.to_thread(parse, text, most_bytes=most)  # a large one takes its time
        if workflow.unaddressed and workflow.unaddressed - (known := await session.gateway.catalogue.tasks()):
            await asyncio.to_thread(parse, text, most_bytes=most, registered=known)  # it raises, with the places
    except WorkflowTooLarge:
        raise
    except BadWorkflow as error:
        raise _refused(error) from None
    said = text.decode()
    row = await session.runs.submit(
        name,
        workflow.defaults,
        tag=tag or None,
        tags=[tag or settings.default_tag()],
        idempotency_key=idempotency_key,
        source="http",
        tenant=session.tenant or "",
        api_key=session.key_id,
        workflow=said,
    )
    if idempotency_key is not None:
        workflow_digest = hashlib.sha256(said.encode()).hexdigest()
        refuse_another(row, idempotency_key, name, plain_params(workflow.defaults), workflow_digest)
    return answer({"run_id": row.id, "status": row.status.value, "number": row.number})


async def _form(request: Request, most: int) -> FormData:
    """Reads the form; one that could not fit the largest workflow is refused before it is read."""
    try:
        data = await body_of(request, most + AROUND)
    except TooLarge:
        raise WorkflowTooLarge from None

    async def stream() -> AsyncGenerator[bytes, None]:
        yield data

    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "multipart/form-data":
            parser = MultiPartParser(request.headers, stream(), max_files=4, max_fields=32, max_part_size=most + AROUND)
            return await parser.parse()
        if kind == "application/x-www-form-urlencoded":
            return await FormParser(request.headers, stream()).parse()
    except (MultiPartException, FormParserError, UnicodeError, KeyError, LookupError, ValueError) as error:
        raise BadRequest(f"invalid request: the form cannot be read: {error}") from None
    return FormData()


async def _fields(form: FormData) -> tuple[bytes, str, str]:
    workflow, name, tag = form.get("workflow"), form.get("flow_name"), form.get("tag", "")
    absent = [_absent(field, form) for field in ("workflow", "flow_name") if not form.get(field)]
    if absent:
        raise Invalid(absent)
    if isinstance(name, str) and not name.strip():
        raise Invalid([{"type": "string_pattern_mismatch", "loc": ("body", "flow_name"), "msg": "String is blank"}])
    if not isinstance(name, str) or len(name) > 512:  # noqa: PLR2004 - as the schema says
        raise Invalid([{"type": "string_type", "loc": ("body", "flow_name"), "msg": "Input should be a short string"}])
    if not isinstance(tag, str) or (tag and not re.fullmatch(TAG, tag)) or tag.endswith("\n"):
        raise BadRequest("invalid tag")
    text = await workflow.read() if isinstance(workflow, UploadFile) else str(workflow).encode()
    return text, name, tag


def _absent(field: str, form: FormData) -> dict[str, Any]:
    """Says of a field that it is missing, or that it is there and empty."""
    if field not in form:
        return {"type": "missing", "loc": ("body", field), "msg": "Field required"}
    return {"type": "string_too_short", "loc": ("body", field), "msg": "String should have at least 1 character"}


def _refused(error: BadWorkflow) -> BadWorkflow:
    """Says first what existing clients look for."""
    if str(error).startswith("invalid workflow yaml"):
        return error
    return BadWorkflow(f"invalid workflow yaml: {error}", error.problems, line=error.line, column=error.column)
