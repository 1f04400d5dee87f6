"""A real small model behind OpenAI's protocol defines terms in a run."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.apps.glossary.conftest import Study


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
    project.terms.add("bee space")
    project.documents.add(study.documents("Bee space is a gap of six millimetres between combs."))
    for _ in range(5):  # a small model may fail at a term, or find no end, which is told; then it is asked again
        row = await study.run(project, "generate")
        if row.status == "failed":
            assert "cut off at its greatest length" in (row.error_message or "")
            continue
        assert (row.status, row.error_message) == ("completed", None)
        if found := project.provisional.list():
            break
        assert any(entry.get("level") == "warning" for entry in await study.log(project, row))
    else:
        pytest.fail("it never answered as it was asked to")
    assert found[0].definition
    assert 0 <= found[0].confidence <= 1
