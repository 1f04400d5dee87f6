"""The world outside as a process: language models that write down every request one would pay for, and a GitLab.

`doubles.py LEDGER REPOSITORY…` says its addresses in a line of JSON and stays until it is told to stop. Nothing here
is ever disturbed: what is asked twice was asked twice by the product.
"""

import json
import re
import sys
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

from tests.apps.commits.gitlab_double import GitLabDouble
from tests.chaos.witness import append
from tests.llm.double import Double, staged
from tests.llm.double_answers import Batch
from tsuzuki.apps.glossary.prompts import parts, text_in, texts

NUMBER = re.compile(r" ?\(paid (\d+)\)")
"""What every answer carries: the number of the request in the ledger."""


class Ledger:
    """Writes down what is paid for, in order."""

    def __init__(self, file: Path) -> None:
        self._file, self._numbers, self._lock = file, count(1), threading.Lock()

    def pay(self, prompt: str, how: str) -> int:
        with self._lock:
            number = next(self._numbers)
            append(self._file, number=number, prompt=prompt, how=how, at=time.monotonic())
            return number


def glossary_answer(prompt: str, paid: str) -> Any:
    """Answers the questions of the glossary; None where it asks something else."""
    if "<candidate>" in prompt:
        names = [text_in(candidate, "term") for candidate in parts(prompt, "candidate")]
        return {"terms": [{"term": name, "category": "technical_term"} for name in names]}
    if "<entry>" in prompt:
        return {
            "issues": [
                {"term_name": term, "issue_type": "unclear", "description": f"{term} is vague {paid}"}
                for term in texts(prompt, "term")
            ]
        }
    if "<term>" in prompt:
        done = "refined" if "<issue>" in prompt else "as it is"
        return {"definition": f"{text_in(prompt, 'term')} {done} {paid}", "confidence": 0.8}
    return None


def notes_answer(prompt: str, paid: str) -> Any:
    title = re.search(r"Title: (.*)", prompt)
    if title is None:
        return None
    return {"title": title[1], "summary": f"In short {paid}.", "content": "## Point\n\nAll of it.", "tags": ["a"]}


class Counting(Double):
    """A double that pays for batches when they are made: each question once for each batch it is in."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger
        self.answer = self._answer
        self.delay = 0.03
        self.plan.polls = 2

    def _answer(self, prompt: str) -> str:
        if prompt.startswith("batch "):
            return f"answer to {prompt}"
        paid = f"(paid {self._ledger.pay(prompt, 'request')})"
        found = glossary_answer(prompt, paid) or notes_answer(prompt, paid)
        return json.dumps(found) if found is not None else f"answer to {prompt} {paid}"

    def made(self, requests: list[dict[str, Any]], metadata: dict[str, str], prefix: str) -> Batch:
        for each in requests:
            self._ledger.pay(str(each["body"]["messages"][-1]["content"]), "batch")
        return super().made(requests, metadata, prefix)


def main(ledger: Path, repositories: list[Path]) -> None:
    with staged() as stage, GitLabDouble(delay=0.005) as gitlab:
        model = stage.play(Counting(Ledger(ledger)))
        for repository in repositories:
            gitlab.host(repository)
        sys.stdout.write(json.dumps({"model": f"{model.url}/v1", "gitlab": gitlab.url}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()  # until whoever started us closes it, or is gone


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]])
