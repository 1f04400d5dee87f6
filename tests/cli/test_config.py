"""`tsuzuki config`: what is set, and where each value came from."""

import json

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
