"""No regular expression of the package takes more than linear time, whatever text it is asked about."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fuzz.patterns import Found, patterns, slow_texts

LENGTH = 60_000
"""Signs in a text: a linear pattern takes milliseconds for so many, a quadratic one many seconds."""
ALLOWED = 0.5
"""Seconds of processor time that a pattern may take for one text; what other processes take does not count."""


def slow_ones(found: list[Found]) -> list[str]:
    """Ask every pattern about its slow texts in a child, which the system ends when its time is over.

    `re` looks for signals only now and then, so no handler of Python could end it.
    """
    slow, at = [], 0
    while at < len(found):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            for number in range(at, len(found)):
                os.write(write, number.to_bytes(4))
                ask(found[number])
            os._exit(0)
        os.close(write)
        ended = os.waitpid(child, 0)[1]
        with os.fdopen(read, "rb") as pipe:
            last = int.from_bytes(pipe.read()[-4:])
        slow += [found[last].place] if ended else []
        at = last + 1
    return slow


def ask(found: Found) -> None:
    for text in slow_texts(found.pattern, LENGTH):
        for method in found.methods:
            signal.setitimer(signal.ITIMER_VIRTUAL, ALLOWED)
            if method in ("search", "match", "fullmatch"):
                getattr(found.pattern, method)(text)
            else:
                for _ in found.pattern.finditer(text):
                    pass


def everything() -> tuple[list[str], list[str]]:
    """Return where patterns were found, and which of them are slow."""
    found = patterns()
    return [each.place for each in found], slow_ones(found)


def told_by(code: str) -> Any:
    """Run code in a process of its own: a child that is forked by one with threads may do little."""
    code = f"import json, re; from tests.fuzz import test_patterns as t; print(json.dumps({code}))"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_pattern_takes_more_than_linear_time() -> None:
    places, slow = told_by("t.everything()")
    assert slow == []
    assert {"tsuzuki.apps.notes.sources.plain._HEADING", "tsuzuki.shapes.SHAPES"} <= set(places)
    assert any(re.fullmatch(r"dotenv\.py:\d+", place) for place in places), "those in calls are found too"


def test_a_slow_pattern_is_found() -> None:
    """The search finds what it is meant for, and goes on with the next."""
    slow = [
        (r"(?m)^#[ \t]+(.+?)[ \t]*#*$", "search"),
        (r"(?m)^(title|date)[ \t]*:[ \t]*['\"]?(.*?)['\"]?[ \t]*$", "findall"),
        (r"(?m)^#[ \t]++([^\n]++)", "search"),  # is not
        (r"(\w+)(\+\+|#(?!\w))", "sub"),
        (r"(?s)<!--.*?-->", "sub"),
    ]
    told = told_by(f"t.slow_ones([t.Found(str(n), re.compile(p), {{how}}) for n, (p, how) in enumerate({slow!r})])")
    assert told == ["0", "1", "3", "4"]
