"""What is sent to each route so that its owner gets what he asks for: then what others are answered means something.

A route that takes something and is not in this table answers its owner 422, and the test of routes says so.
"""

import re
from typing import Any

Things = dict[str, Any]

YAML = b"flow:\n  graph: load >> count\ntasks:\n  load: {callable: 'lab:load'}\n  count: {callable: 'lab:count'}\n"
BULK = {"run_id": "{bulk}"}
PROJECT = "/api/projects/{project_id}"
SENT: dict[str, dict[str, Any]] = {
    "POST /runs/yaml": {"data": {"flow_name": "report"}, "files": {"workflow": ("w.yaml", YAML)}},
    "POST /runs/batch": {"json": {"runs": [{"flow_name": "fails", "continues": "{run_id}"}]}},
    "POST /runs": {"json": {"flow_name": "fails", "key": "{key}", "continues": "{run_id}"}},
    "POST /api/commits/connections": {"json": {"base_url": "{gitlab}", "token": "{token}"}},
    "DELETE /api/commits/projects/{project_id}/branches": {"params": {"name": "main"}},
    "POST /api/commits/collect": {"json": {"project_id": "{project_id}", "branches": ["main"]}},
    "POST /api/commits/bulk": {"json": {}},
    "POST /api/commits/bulk/retry": {"json": BULK},
    "POST /api/commits/bulk/cancel": {"json": BULK},
    "GET /api/commits/bulk/status": {"params": BULK},
    "GET /api/commits/bulk/events": {"params": BULK},
    "POST /api/projects": {"json": {"name": "another", "llm_provider": "offline"}},
    f"PATCH {PROJECT}": {"json": {"llm_model": "m"}},
    f"POST {PROJECT}/clone": {"json": {"new_name": "copy"}},
    f"POST {PROJECT}/files": {"json": {"file_name": "b.md", "content": "x"}},
    f"POST {PROJECT}/files/bulk": {"json": {"files": [{"file_name": "c.md", "content": "x"}]}},
    f"POST {PROJECT}/terms": {"json": {"term_text": "another"}},
    f"PATCH {PROJECT}/terms/{{term_id}}": {"json": {"user_notes": "x"}},
    f"POST {PROJECT}/excluded-terms": {"json": {"term_text": "never"}},
    f"POST {PROJECT}/required-terms": {"json": {"term_text": "always"}},
    f"POST {PROJECT}/synonym-groups": {"json": {"primary_term_text": "one", "member_texts": ["one", "two"]}},
    f"PATCH {PROJECT}/synonym-groups/{{group_id}}": {"json": {"primary_term_text": "journal"}},
    f"POST {PROJECT}/synonym-groups/{{group_id}}/members": {"json": {"term_text": "four"}},
    f"PATCH {PROJECT}/provisional/{{entry_id}}": {"json": {"definition": "x"}},
    f"PATCH {PROJECT}/refined/{{entry_id}}": {"json": {"definition": "x"}},
    f"POST {PROJECT}/runs": {"json": {"scope": "full"}},
    "GET /api/ollama/models": {"params": {"base_url": "{ollama}"}},
    "POST /api/greetings/greet": {"json": ["you"]},
    "POST /api/notes/sessions": {"json": {"upload": "{sent}", "llm": "offline"}},
    "POST /api/notes/uploads": {"json": {"name": "b.json"}},
    "POST /api/notes/uploads/{upload_id}": {"files": {"piece": ("b.json", b"[]")}},
    "GET /api/notes/sessions/{session_id}/trace": {"params": {"item": "{item}"}},
    "GET /api/notes/sessions/{session_id}/note": {"params": {"item": "{item}"}},
}
WITHOUT = {
    "GET /wheels/{wheel_name}": "no wheel was brought; all tenants would see it",
    "GET /api/ollama/models": "no such server runs here",
    "POST /api/commits/bulk/retry": "nothing has failed",
    "POST /api/commits/bulk/cancel": "none is running",
    "POST /api/notes/sessions/{session_id}/retry": "nothing has failed",
    "POST /dlq/{letter_id}/replay": "its run was resumed before",
    "DELETE /dlq/{letter_id}": "it was tried again before",
    "DELETE /api/projects/{project_id}/synonym-groups/{group_id}": "it went with its first member",
    "DELETE /api/projects/{project_id}": "a run of it is active",
}
"""Where even the owner may get nothing, and why; he is refused for no other reason."""
ANOTHER_RUN = {"/api/projects/": "number", "/api/commits/": "bulk"}
"""Applications that number runs in their own way."""


def filled(told: Any, things: Things) -> Any:
    """Puts things into what is sent."""
    if isinstance(told, dict):
        return {name: filled(part, things) for name, part in told.items()}
    if isinstance(told, list):
        return [filled(part, things) for part in told]
    named = isinstance(told, str) and re.fullmatch(r"\{(\w+)\}", told)
    return things[named[1]] if named else told


def place(path: str, things: Things) -> str:
    """Puts things into a path; numbers of applications are counted by each tenant for itself."""
    mine = next((things[name] for begin, name in ANOTHER_RUN.items() if path.startswith(begin)), things["run_id"])
    return re.sub(
        r"\{(\w+)(?::path)?\}", lambda found: str({**things, "run_id": mine}.get(found[1], things["number"])), path
    )


def sent(method: str, path: str, things: Things, example: Any = None) -> dict[str, Any]:
    """Gives what is sent to a route: by the table, else the example of its document."""
    told = SENT.get(f"{method} {path}")
    if told is None:
        return {} if example is None else {"json": example}
    return dict(filled(told, things))
