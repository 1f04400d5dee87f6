"""Wheels by commands and by the client that waits: the whole round, with both names of each command."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.gateway.conftest import House
from tests.wheels.making import flow_wheel
from tsuzuki import Client
from tsuzuki.cli import main
from tsuzuki.client import HTTPStatusError

NAME = "demo-1.0-py3-none-any.whl"


async def said(house: House, *arguments: str, code: int = 0) -> str:
    """Gives what a command says."""
    told = await asyncio.to_thread(CliRunner().invoke, main, ["-q", *arguments, "--server", house.url])
    assert told.exit_code == code, told.output
    return told.output


async def parsed(house: House, *arguments: str) -> Any:
    return json.loads(await said(house, *arguments, "-o", "json"))


async def test_the_commands_upload_list_download_delete_and_tell(small: House, tmp_path: Path) -> None:
    assert "there are no wheels" in await said(small, "wheels", "list")
    path = flow_wheel(tmp_path, "demo", "1.0")
    told = await said(small, "wheels", "upload", str(path), "--tags", "red,blue")
    assert f"{NAME} is uploaded: workers tagged blue or red" in told
    assert "already exists; bump version [ERR-TSUZUKI-0022]" in await said(
        small, "wheel-upload", "--wheel-file", str(path), "--no-replace", code=1
    )
    (wheel,) = await parsed(small, "wheels", "list")
    assert (wheel["name"], wheel["tags"]) == (NAME, ["blue", "red"])
    assert "blue,red" in await said(small, "wheels", "list")
    assert "blue,red" in await said(small, "wheels")
    before = await asyncio.to_thread(CliRunner().invoke, main, ["--server", small.url, "wheels"])
    assert "blue,red" in before.output
    await said(small, "wheels", "download", NAME, "--to", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == path.read_bytes()
    assert "wheel not found [ERR-TSUZUKI-0023]" in await said(
        small, "wheels", "download", "x.whl", "--to", str(tmp_path / "none"), code=1
    )
    assert not (tmp_path / "none").exists()
    assert "is deleted" in await said(small, "wheel-delete", "--wheel-name", NAME)
    assert "[ERR-TSUZUKI-0023]" in await said(small, "wheels", "delete", NAME, code=1)
    events = await parsed(small, "wheel-history", "--limit", "5")
    assert [event["action"] for event in events] == ["delete", "upload"]
    assert await parsed(small, "wheels", "history", "--action", "upload", "--wheel-name", NAME) == events[1:]
    assert "[ERR-TSUZUKI-0018]" in await said(small, "wheel-upload", code=1)


async def test_a_client_that_waits_does_the_same(small: House, tmp_path: Path) -> None:
    path = flow_wheel(tmp_path, "demo", "1.0")

    def round_trip() -> None:
        with Client(small.url) as client:
            kept = client.upload_wheel(NAME, path.read_bytes(), replace=True, tags=["red"])
            assert client.list_wheels() == [kept]
            client.download_wheel(NAME, tmp_path / "back.whl")
            assert (tmp_path / "back.whl").read_bytes() == path.read_bytes()
            assert client.list_wheel_history(limit=1, wheel_name=NAME, action="upload")[0]["tags"] == ["red"]
            assert client.delete_wheel(NAME) == {"name": NAME, "deleted": True}
            with pytest.raises(HTTPStatusError, match="wheel not found"):
                client.delete_wheel(NAME)

    await asyncio.to_thread(round_trip)
