"""A real small model behind OpenAI's protocol defines terms in a run."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.apps.glossary.conftest import Study

pytestmark = pytest.mark.xdist_group("the real model")


@pytest.fixture
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.llm.model_server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield f"{server.stdout.readline().strip()}/v1"
        server.kill()


@pytest.mark.timeout(240)
async def test_a_run_with_a_real_model_completes(study: Study, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await study.work()
    made = study.desk.registry.add("real", llm_provider="llama.cpp", llm_model="smollm2", llm_base_url=address)
    project = study.desk.project(made.id)
    for term in ("bee space", "comb", "propolis"):
        project.terms.add(term)
    text = "Bee space is a gap of six millimetres. A comb is made of wax. Propolis is a resin."
    project.documents.add(study.documents(text))
    monkeypatch.setenv("TSUZUKI_LLM_CONCURRENCY", "3")
    row = await study.run(project, "generate")
    assert (row.status, row.error_message) == ("completed", None)
    defined = project.provisional.list()
    left_out = [entry for entry in await study.log(project, row) if entry.get("level") == "warning"]
    assert len(defined) + len(left_out) == 3, "a small model may fail at a term, which is told"
    assert defined
    assert all(entry.definition and 0 <= entry.confidence <= 1 for entry in defined)
