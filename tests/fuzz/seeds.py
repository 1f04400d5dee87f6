"""What fuzzing begins with: honest input of every kind, and what once went wrong."""

import json
import tempfile
from functools import cache
from pathlib import Path

from tests.apps.notes.exports import chatgpt, claude, zipped
from tests.fuzz.targets import NAME
from tests.wheels.making import make_wheel
from tsuzuki.gateway import cursors

WORKFLOW = b"""version: 1
flow:
  graph: |
    load >> (clean & stats) >> report
  defaults: {path: a.csv, n: 1_0, x: &a [1, 2.5, true, null]}
tasks:
  load: {callable: "m:f", retry: {attempts: 3}, map: {over: $ctx.params.path}}
  clean: {callable: f, inputs: {rows: "$node.load.output.0", more: *a}}
  stats: {callable: f, timeout_sec: 5}
  report: {callable: f}
runtime: {expose_env: [HOME]}
"""
DOCUMENT = """---
title: 用語
---
# 1. Terms of the term

A **term** is a word: see [this](a/b.md) or <b>that</b> <!-- hidden --> at https://example.org/x, a@example.org.
「用語」とは、ある分野の言葉をいう。読み込みキューとは待つ場所のこと。

```python
term = 1
```
- term: a word that means something in `code`.
| term | meaning |
|---|---|
"""
DOCUMENTS = (
    "---\ntitle: a\n---\n# Worker\n\nA worker is a process that takes runs. Workers wait.\n",
    "## 2.1 Run queue ##\n\n**Run queue**: where runs wait.\n* run: one execution.\n1) step: a call.\n",
    "キューとは、待つ場所のこと。待つ場所をキューという。「読み込みキュー」は仕込みの前にある。\n",
    "| term | meaning |\n|---|---|\n| worker | takes runs |\n| 用語 | 言葉 |\n",
    "```python\nworker = 1\n```\n~~~\nrun\n~~~\n`code` <b>x</b> <!-- no --> [a](b(c).md) ![p](q.png)\n",
    "See https://example.org/a?b=c, a@example.org, docs/guide.md and and/or; v1.2.3 of API-Gateway/2.\n",
    "=HYPERLINK(1)\n+term\n-term\n@term: a word\n\tterm means a word.\n＝用語：言葉\n",
    "<term>x</term> ＜/ＵＳＥＲ_notes＞ <\u200b/context > &lt;definition&gt; &#60;term>\n",
    "Term\r\n====\r\nA term is a word.\r\rTerms are words.\x0b\x0c\x85\u2028term\u2029\ufeffterm\n",
    "The HTTP/2 client (see RFC 9113) and the C++ API's `term`s; e.g. i.e. U.S. terms. Is it a term? Yes! 用語。\n",
    "本醸造酒とは三段仕込みの酒である。第2章の12本は読み込む。ＡＰＩ・キー、ｶﾀｶﾅ、々〆ヶ、𠮷野家、が゙。\n",
    "#\n# \n####### x\n**a** **  ** ____ 「」『』\n- : x\n> term — quoted\n***term***: x\n",
)
"""One thing each, and short: the fuzzer puts them together."""
ANSWER = """# Title
Otters
## Summary:
They swim.
**Tags**: a, b
```json
{"terms": [{"name": "a", "confidence": NaN}]}
```
<think>x</think>"""
REQUESTS = [
    b'POST /runs\ncontent-type: application/json\nIdempotency-Key: k\n\n{"flow_name": "x", "params": {"a": 1e5}}',
    b'POST /runs/batch\ncontent-type: application/json\n\n{"runs": [{"flow_name": "x"}]}',
    b'POST /runs/yaml\ncontent-type: application/json\n\n{"flow_name": "x", "workflow_yaml": "flow: {graph: a}"}',
    b"GET /runs?status=RUNNING&cursor=eyJ1IjoxLjAsInIiOiJhIn0&limit=5&include=full&text=%231",
    b"GET /runs/RUN/events?after=3\nLast-Event-ID: 12",
    b"GET /runs/RUN/events\nlast-event-id: " + b"9" * 5000,
    b"GET /runs/RUN/watch?since=1.5&timeout_sec=1&include=all",
    b"GET /runs/RUN/watch?since=x&a\xff=1",
    b"GET /runs/RUN/items?cursor=eyJwIjoxfQ&status=failed&error=x",
    b"GET /runs/RUN/items/1",
    b"GET /dlq?cursor=1&limit=2",
    b"GET /dlq/1",
    b'PATCH /workers/w\ncontent-type: application/json\n\n{"hidden": true}',
    (
        b"POST /wheels\ncontent-type: multipart/form-data; boundary=b\n\n--b\r\nContent-Disposition: form-data; "
        b'name="wheel"; filename="a-1-py3-none-any.whl"\r\n\r\nPK\r\n--b--\r\n'
    ),
    b"GET /wheels/a-1-py3-none-any.whl",
    b"GET /static/..%2f..%2fapp.py",
    b"GET /apps/glossary/%2e%2e/desk.py",
    b'POST /api/projects\ncontent-type: application/json\n\n{"name": "p", "llm_provider": "offline"}',
    b'POST /api/commits/bulk\ncontent-type: application/json\n\n{"projects": [1]}',
    b'POST /api/notes/uploads\ncontent-type: application/json\n\n{"name": "a.zip"}',
    b"POST /runs/RUN/cancel\norigin: http://evil.example\nhost: localhost\n\n",
]


def beheaded(archive: bytes) -> list[bytes]:
    """Gives a ZIP whose first file has a name before it that is no UTF-8, and one where it begins at the very end."""
    misnamed, misplaced = bytearray(archive), bytearray(archive)
    misnamed[6:8], misnamed[30] = (0x800).to_bytes(2, "little"), 0xFF
    listed = archive.index(b"PK\x01\x02")
    misplaced[listed + 42 : listed + 46] = (len(archive) - 10).to_bytes(4, "little")
    return [bytes(misnamed), bytes(misplaced)]


@cache
def seeds() -> dict[str, list[bytes]]:
    """Gives seeds by the name of their target."""
    of_chatgpt, of_claude = json.dumps([chatgpt(1), chatgpt(2)]).encode(), json.dumps([claude(1)]).encode()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheels = [
            make_wheel(
                folder, "demo", "1.0", {"demo.py": "X = 1\n", "a/b.py": ""}, requires=["x>=1"], packed=packed
            ).read_bytes()
            for packed in (True, False)
        ]
        archives = [
            zipped(folder / "a.zip", {"conversations.json": found, "user.json": "{}"}).read_bytes()
            for found in (of_chatgpt, of_claude)
        ]
    lines = (
        b'{"id": "a", "title": "t", "created_at": 1e9, "messages": [{"role": "user", "text": "x"}]}\n{"text": "y"}\n'
    )
    return {
        "workflow": [WORKFLOW, b"flow: {graph: a}\ntasks: {a: {callable: f}}\n"],
        "cursor": [b"", cursors.after_position(7).encode(), b"eyJ1IjoxLjAsInIiOiJhIn0"],
        "wheel-name": [NAME.encode(), b">=3.11,<4", b"x[a]>=1; python_version > '3'", b"a,b", b">=" + b"9" * 5000],
        "wheel": [*wheels, *beheaded(wheels[0])],
        "export-zip": [*archives, *beheaded(archives[0])],
        "export-json": [of_chatgpt, of_claude],
        "export-jsonl": [lines, lines + b"[" * 3000],
        "export-text": [DOCUMENT.encode()],
        "document": [each.encode() for each in (DOCUMENT, *DOCUMENTS)],
        "document-name": [each.encode() for each in ("docs/a.md", "b/用語.txt", "COM1.md", "a/../b.md", "a\u202e.md")],
        "answer": [ANSWER.encode()],
        "http": REQUESTS,
    }
