"""Reads what is typed: params (`-p key=value`, `-p @params.json`, `--params FILE`), files, stdin, words, yes or no."""

import sys
from codecs import BOM_UTF8
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from tsuzuki.errors import BadParams, BadUsage
from tsuzuki.flow import Flow


def read_params(flow: Flow[..., Any], given: Iterable[str], file: str | None) -> dict[str, Any]:
    """Gives the params, checked by the flow; later ones replace earlier ones, and -p replaces --params."""
    params = _from_file(file) if file else {}
    texts: dict[str, str] = {}
    for text in given:
        if text.startswith("@"):
            params.update(_from_file(text[1:]))
            continue
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BadUsage(f"-p {text!r} is no param; say -p name=value, or -p @file.json")
        params[name] = value_of(value)
        texts[name] = value
    return _fitted(flow, params, texts)


def value_of(text: str) -> Any:
    """Takes JSON as JSON, and all else as text."""
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return text


def _fitted(flow: Flow[..., Any], params: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    """Checks the params; a value that looks like JSON stays text where the flow wants text (`-p year=2024`)."""
    try:
        flow.params.encode(params)
    except BadParams as refusal:
        wants_text = {
            str(place[0])
            for problem in refusal.problems
            if problem["type"] == "string_type" and isinstance(place := problem["loc"], list) and place
        }
        again = params | {name: texts[name] for name in wants_text & texts.keys() if params[name] != texts[name]}
        if again == params:
            raise
        flow.params.encode(again)
        return again
    return params


def _from_file(name: str) -> dict[str, Any]:
    return object_of(read_file(name), name)


def object_of(data: bytes, where: str) -> dict[str, Any]:
    """Reads params that are one JSON object."""
    try:
        return msgspec.json.decode(unmarked(data), type=dict[str, Any])
    except ValueError as error:
        raise BadUsage(f"{where} must be one JSON object, for example '{{\"pages\": 500}}': {error}") from error


def unmarked(data: bytes) -> bytes:
    """Leaves out the mark that editors on Windows put before text in UTF-8."""
    return data.removeprefix(BOM_UTF8)


def read_file(name: str) -> bytes:
    """Reads a file, or stdin where it is called -."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        why = error.strerror or error
        raise BadUsage(f"{name} cannot be read: {why}; say the path of a file, or - for stdin") from error


def words_of(texts: Iterable[str]) -> list[str]:
    """Gives the words of an option that may be repeated, or have commas."""
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def agreed_to_remove(what: str) -> bool:
    """Asks whether something is to be removed, and says if not; where nobody answers, `--yes` has to."""
    try:
        agreed = click.confirm(f"Remove {what} for ever?", err=True)
    except (click.Abort, RuntimeError) as error:  # the latter where stdin is closed
        if isinstance(error, click.Abort) and sys.stdin.isatty():  # Ctrl-C
            raise
        raise BadUsage(f"this would remove {what} for ever; say --yes") from None
    if not agreed:
        click.echo("nothing was removed", err=True)
    return agreed
