"""Every YAML text of docs/yaml.md does what the page says."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tsuzuki import Status
from tsuzuki.testing import run_flow
from tsuzuki.yamlflow import Callables, check, parse, workflow_flow

PAGE = (Path(__file__).parents[2] / "docs/yaml.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
EXAMPLES = [
    (text, said, kind)
    for number, (language, text) in enumerate(BLOCKS)
    if language == "yaml"
    for kind, said in [BLOCKS[number + 1]]
]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions of the page."""
    module = ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", module)
    exec(next(text for language, text in BLOCKS if language == "python"), module.__dict__)  # noqa: S102 - our own page


@pytest.mark.parametrize(("text", "said", "kind"), EXAMPLES, ids=range(len(EXAMPLES)))
async def test_an_example_does_what_the_page_says(text: str, said: str, kind: str, shop: None) -> None:
    if kind == "text":
        assert "".join(f"{flaw}\n" for flaw in check(text)) == said
        return
    run = await run_flow(workflow_flow(parse(text), Callables(["shop"]).resolve))
    assert run.status is Status.COMPLETED, run.error
    assert run.result == json.loads(said)


def test_there_are_examples_of_both_kinds() -> None:
    assert {kind for _, _, kind in EXAMPLES} == {"json", "text"}
    assert len(EXAMPLES) >= 5


async def test_the_example_for_python_is_what_it_says(shop: None) -> None:
    code = [text for language, text in BLOCKS if language == "python"][-1]
    text = EXAMPLES[0][0]
    body = "".join(f"    {line}\n" for line in code.splitlines())
    scope: dict[str, object] = {"text": text}
    exec(f"async def example():\n{body}    return run", scope)  # noqa: S102 - our own page
    example: object = scope["example"]
    assert callable(example)
    run = await example()
    assert run.result == {"report": "rice is the dearest of 13"}
