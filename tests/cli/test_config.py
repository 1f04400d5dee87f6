"""`tsuzuki config`: what is set, and where each value came from."""

import json
import socket

import pytest

from tests.cli.conftest import Terminal


def values(terminal: Terminal, *arguments: str) -> dict[str, tuple[str, str]]:
    shown = json.loads(terminal.tsuzuki("config", "--json", *arguments).stdout)
    return {one["name"]: (one["value"], one["from"]) for one in shown}


def test_it_shows_every_setting_with_where_it_came_from(terminal: Terminal) -> None:
    (terminal.folder / ".env").write_text("TSUZUKI_DEFAULT_TAG=gpu\nTSUZUKI_API_KEY=tell-nobody\nTSUZUKI_LOG_UTC=0\n")
    found = values(terminal, "--data-dir", "elsewhere")
    assert found["TSUZUKI_DATA_DIR"] == ("elsewhere", "flag")
    assert found["TSUZUKI_DEFAULT_TAG"] == ("gpu", ".env")
    assert found["TSUZUKI_LOG_UTC"] == ("false", ".env")
    assert found["TSUZUKI_LOG_LEVEL"] == ("INFO", "default")
    assert found["TSUZUKI_API_KEY"] == ("••••••", ".env")
    assert "tell-nobody" not in terminal.tsuzuki("config").stdout


def test_it_shows_only_what_was_changed_when_asked(terminal: Terminal) -> None:
    (terminal.folder / ".env").write_text("TSUZUKI_DEFAULT_TAG=gpu\n")
    assert terminal.tsuzuki("config", "--changed").stdout.split() == [
        "SETTING",
        "VALUE",
        "FROM",
        "TSUZUKI_DEFAULT_TAG",
        "gpu",
        ".env",
    ]


def test_a_bad_value_is_told_and_refused_when_strict(terminal: Terminal) -> None:
    odd = "TSUZUKI_LOG_LEVEL=loud\nTSUZUKI_LOG_LEVLE=INFO\nTSUZUKI_BOGUS=1\nTSUZUKI_ACK_PROGRESS_INTERVAL_SEC=60\n"
    (terminal.folder / ".env").write_text(odd)
    said = terminal.tsuzuki("config").stderr
    assert "TSUZUKI_LOG_LEVEL='loud' is ignored, its default (INFO) holds" in said
    assert "TSUZUKI_LOG_LEVLE is no setting of Tsuzuki; did you mean TSUZUKI_LOG_LEVEL?" in said
    assert "TSUZUKI_BOGUS is no setting of Tsuzuki\n" in said
    assert "TSUZUKI_ACK_PROGRESS_INTERVAL_SEC=60 is not below TSUZUKI_CONSUMER_ACK_WAIT_SEC=30: a third" in said
    refused = terminal.tsuzuki("config", "--strict-config", code=1)
    assert "TSUZUKI_LOG_LEVEL='loud'" in refused.stderr
    assert "is not below TSUZUKI_CONSUMER_ACK_WAIT_SEC" in refused.stderr
    assert "ERR-TSUZUKI-0018" in refused.stderr


def test_a_bad_value_does_not_stop_other_commands(terminal: Terminal) -> None:
    (terminal.folder / ".env").write_text("TSUZUKI_LEASE_SECONDS=a while\n")
    assert terminal.json("run", "flows.py:nothing")["status"] == "COMPLETED"


@pytest.mark.parametrize(
    ("address", "secret", "command"),
    [
        ("TSUZUKI_SERVER=http://{}", "TSUZUKI_API_KEY", ["list"]),
        ("TSUZUKI_LLM_PROVIDER=openai\nTSUZUKI_LLM_BASE_URL=http://{}/v1", "OPENAI_API_KEY", ["llm", "ask", "hi"]),
        ("TSUZUKI_BACKEND=nats://{}", "TSUZUKI_NATS_TOKEN", ["list"]),
        ("TSUZUKI_NATS_URL=nats://{}", "TSUZUKI_NATS_TOKEN", ["list"]),
        (
            "TSUZUKI_GITLAB_URL=http://{0}",
            "TSUZUKI_GITLAB_TOKEN",
            ["commits", "connect", "http://{0}", "--no-token"],
        ),
    ],
    ids=["gateway", "model", "store", "nats", "gitlab"],
)
def test_a_secret_of_the_environment_is_not_sent_to_an_address_of_the_folder(
    terminal: Terminal, address: str, secret: str, command: list[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as evil:
        evil.setblocking(False)
        place = f"127.0.0.1:{evil.getsockname()[1]}"
        (terminal.folder / ".env").write_text(address.format(place))
        terminal.environment = {secret: "tell-nobody"}
        said = terminal.tsuzuki(*(word.format(place) for word in command), code=1).stderr
        with pytest.raises(BlockingIOError):
            evil.accept()
    name = address.partition("\n")[2].partition("=")[0] or address.partition("=")[0]
    assert f"{name} comes from .env in the current folder and {secret} from the environment" in said
    assert "TSUZUKI_ENV_FILE=.env" in said
    assert "tell-nobody" not in said


def test_what_a_file_of_the_folder_decides_is_shown_once_without_values(terminal: Terminal) -> None:
    (terminal.folder / ".env").write_text("TSUZUKI_DEFAULT_TAG=gpu\nTSUZUKI_API_KEY=tell-nobody\nOTHER=1\n")
    terminal.environment = {"TSUZUKI_DEFAULT_TAG": "cpu"}
    shown = "settings from .env: TSUZUKI_API_KEY\n"
    assert terminal.tsuzuki("list").stderr.count(shown) == 1
    child = terminal.start("--end-with-parent", "list", stdin="")  # whose parent lives, as its input stays open
    child.wait()
    assert shown not in terminal.end(child).stderr, "its parent has shown it"


def test_a_file_that_was_named_is_trusted(terminal: Terminal) -> None:
    (terminal.folder / ".env").write_text("TSUZUKI_SERVER=http://127.0.0.1:9\n")
    terminal.environment = {"TSUZUKI_API_KEY": "tell-nobody", "TSUZUKI_ENV_FILE": ".env"}
    assert "127.0.0.1:9" in terminal.tsuzuki("list", code=1).stderr.partition("\n")[2]
