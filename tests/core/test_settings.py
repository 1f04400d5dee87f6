"""What the environment says, and what is made of it when it makes no sense."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsuzuki import settings
from tsuzuki.backends.nats.options import Options
from tsuzuki.defaults import SETTINGS
from tsuzuki.errors import BadUsage

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


@pytest.fixture(autouse=True)
def a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is set, no file is there, and what was told before is told again."""
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    settings._tell_once.cache_clear()  # noqa: SLF001 - each test listens for its warnings
    yield
    settings._tell_once.cache_clear()  # noqa: SLF001 - and leaves them to the next


def test_what_is_unset_leaves_the_defaults_to_the_store() -> None:
    assert settings.work_queue() == {}
    assert settings.default_tag() == "default"
    assert settings.worker_disconnect_timeout() == 20.0


def test_every_setting_of_the_work_queue_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "WORKERS_KV_BUCKET": "lab_workers",
        "WORK_SUBJECT_PREFIX": "lab.work",
        "CONSUMER_ACK_WAIT_SEC": "12.5",
        "CONSUMER_MAX_DELIVER": "5",
        "CONSUMER_MAX_ACK_PENDING": "50",
        "ACK_PROGRESS_INTERVAL_SEC": "3",
        "DLQ_STREAM": "LAB_DLQ",
        "DLQ_SUBJECT_PREFIX": "lab.dlq",
        "DLQ_PUBLISH_EXECUTION_ERROR": "False",
    }.items():
        monkeypatch.setenv(f"TSUZUKI_{name}", value)
    assert settings.work_queue() == {
        "workers_bucket": "lab_workers",
        "work_prefix": "lab.work",
        "ack_wait": 12.5,
        "max_deliver": 5,
        "max_ack_pending": 50,
        "ack_progress": 3.0,
        "dlq_stream": "LAB_DLQ",
        "dlq_prefix": "lab.dlq",
        "dlq_execution_error": False,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CONSUMER_ACK_WAIT_SEC", "soon"),
        ("CONSUMER_ACK_WAIT_SEC", "-1"),
        ("CONSUMER_ACK_WAIT_SEC", "inf"),
        ("CONSUMER_MAX_DELIVER", "2.5"),
        ("CONSUMER_MAX_ACK_PENDING", "0"),
        ("DLQ_PUBLISH_EXECUTION_ERROR", "perhaps"),
    ],
)
def test_a_value_that_makes_no_sense_is_told_of_and_its_default_holds(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(f"TSUZUKI_{name}", value)
    with caplog.at_level(logging.WARNING, "tsuzuki.settings"):
        assert settings.work_queue() == {}
    assert f"TSUZUKI_{name}={value!r} is ignored" in caplog.text
    assert "holds: it must be " in caplog.text


def test_a_bad_default_tag_or_timeout_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_DEFAULT_TAG", "a.b")
    monkeypatch.setenv("TSUZUKI_WORKER_DISCONNECT_TIMEOUT_SEC", "0")
    assert settings.default_tag() == "default"
    assert settings.worker_disconnect_timeout() == 20.0


def test_the_page_names_the_options_of_an_address_and_no_others() -> None:
    about_nats = PAGE.partition("## NATS")[2]
    columns = [row.split("|")[2] for row in about_nats.splitlines() if row.startswith("| `TSUZUKI_")]
    (more,) = re.findall(r"More options of an address: ([^.]*)\.", PAGE)
    assert set(re.findall(r"`(\w+)`", more + "".join(columns))) == set(Options.__struct_fields__) - {"servers"}


def test_the_page_tells_both_leases() -> None:
    both = f"{settings.lease(one_machine=True):g} on one machine, {settings.lease(one_machine=False):g} elsewhere"
    assert re.search(rf"^\| `TSUZUKI_LEASE_SECONDS` .*\| {both} \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("value", ["x", "nan", "inf", "0", "-1"])
@pytest.mark.parametrize(("name", "default"), [("LEASE_SECONDS", 6.0), ("CANCEL_GRACE_PERIOD_SEC", 30.0)])
def test_a_bad_lease_or_grace_period_is_told_of_with_what_holds_instead(
    name: str, default: float, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(f"TSUZUKI_{name}", value)
    with caplog.at_level(logging.WARNING, "tsuzuki.settings"):
        found = settings.lease(one_machine=False) if name == "LEASE_SECONDS" else settings.grace_period()
    assert found == default
    assert f"TSUZUKI_{name}={value!r} is ignored, its default (" in caplog.text
    assert f"{default:g}" in caplog.text


def where(name: str) -> tuple[str, str]:
    found = next(one for one in settings.effective() if one.setting.name == name)
    return found.shown, found.origin


def test_the_environment_counts_more_than_the_env_file_and_that_more_than_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert where("TSUZUKI_DEFAULT_TAG") == ("default", "default")
    (tmp_path / ".env").write_text("TSUZUKI_DEFAULT_TAG=file\nTSUZUKI_LOG_LEVEL='debug'\n")
    assert where("TSUZUKI_DEFAULT_TAG") == ("file", ".env")
    assert settings.value("TSUZUKI_LOG_LEVEL") == "DEBUG"
    monkeypatch.setenv("TSUZUKI_DEFAULT_TAG", "shell")
    assert where("TSUZUKI_DEFAULT_TAG") == ("shell", "environment")
    flagged = settings.effective({"TSUZUKI_DEFAULT_TAG": "flag", "TSUZUKI_DATA_DIR": None})
    assert [one.origin for one in flagged if one.value == "flag"] == ["flag"]


def test_the_env_file_may_be_another_one_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("TSUZUKI_DEFAULT_TAG=first")
    (tmp_path / "team.env").write_text("TSUZUKI_DEFAULT_TAG=second")
    monkeypatch.setenv("TSUZUKI_ENV_FILE", "team.env")
    assert where("TSUZUKI_DEFAULT_TAG") == ("second", "team.env")
    monkeypatch.setenv("TSUZUKI_LOAD_DOTENV", "0")
    assert where("TSUZUKI_DEFAULT_TAG") == ("default", "default")


def test_an_env_file_that_is_named_and_missing_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TSUZUKI_ENV_FILE", "nowhere.env")
    assert settings.default_tag() == "default"
    assert "nowhere.env" in caplog.text


def test_an_env_file_that_changes_is_read_again(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TSUZUKI_DEFAULT_TAG=a")
    assert settings.default_tag() == "a"
    (tmp_path / ".env").write_text("TSUZUKI_DEFAULT_TAG=another")
    assert settings.default_tag() == "another"


def test_a_bad_value_is_told_once_with_the_default_that_holds_instead(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TSUZUKI_GRACE_SECONDS", "a while")
    monkeypatch.setenv("TSUZUKI_CANCEL_GRACE_PERIOD_SEC", "-3")
    assert [settings.grace_period() for _ in range(3)] == [30.0] * 3
    first, second = [record.getMessage() for record in caplog.records]
    assert first.startswith("TSUZUKI_GRACE_SECONDS='a while' is ignored, its default (TSUZUKI_CANCEL_GRACE_PERIOD_SEC)")
    assert second.startswith("TSUZUKI_CANCEL_GRACE_PERIOD_SEC='-3' is ignored, its default (30.0) holds")


def test_a_strict_check_refuses_what_makes_no_sense_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    settings.check()
    monkeypatch.setenv("TSUZUKI_LOG_FORMAT", "xml")
    monkeypatch.setenv("TSUZUKI_WHEEL_MAX_BYTES", "many")
    with pytest.raises(BadUsage, match=r"TSUZUKI_LOG_FORMAT='xml'.*TSUZUKI_WHEEL_MAX_BYTES='many'"):
        settings.check()


def test_the_address_of_nats_is_the_store_when_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.backend_url() == "sqlite:.tsuzuki/tsuzuki.db"
    assert settings.backend_url("nats") == "nats://127.0.0.1:4222"
    monkeypatch.setenv("TSUZUKI_NATS_URL", "nats://far:4222")
    assert settings.backend_url() == "nats://far:4222"
    assert settings.backend_url(directory="here") == "sqlite:here/tsuzuki.db"
    monkeypatch.setenv("TSUZUKI_BACKEND", "sqlite:other.db")
    assert settings.backend_url() == "sqlite:other.db"


def test_secrets_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TSUZUKI_API_KEY", "TSUZUKI_NATS_TOKEN", "TSUZUKI_NATS_PASSWORD"):
        monkeypatch.setenv(name, "tell-nobody")
    monkeypatch.setenv("TSUZUKI_NATS_URL", "nats://me:tell-nobody@host")
    assert not [one for one in settings.effective() if "tell-nobody" in one.shown]


def test_every_default_makes_sense_to_its_own_reader() -> None:
    for setting in SETTINGS.values():
        assert bool(setting.default) != bool(setting.otherwise), setting.name
        if setting.default:
            setting.read(setting.default)


def test_the_defaults_are_those_of_the_contract() -> None:
    expected = {
        "NATS_URL": "nats://127.0.0.1:4222",
        "DEFAULT_TAG": "default",
        "RUNS_KV_BUCKET": "tsuzuki_runs",
        "WORKERS_KV_BUCKET": "tsuzuki_workers",
        "WORKERS_KV_TTL_SEC": 15.0,
        "WORKER_DISCONNECT_TIMEOUT_SEC": 20.0,
        "RUN_HEARTBEAT_INTERVAL_SEC": 1.0,
        "WORKER_HEARTBEAT_INTERVAL_SEC": 5.0,
        "CANCEL_GRACE_PERIOD_SEC": 30.0,
        "CONSUMER_ACK_WAIT_SEC": 30.0,
        "CONSUMER_MAX_DELIVER": 20,
        "CONSUMER_MAX_ACK_PENDING": 200,
        "ACK_PROGRESS_INTERVAL_SEC": 10.0,
        "DLQ_PUBLISH_EXECUTION_ERROR": True,
        "MAX_RUN_SNAPSHOT_BYTES": 262144,
        "WHEEL_OBJECT_STORE_BUCKET": "tsuzuki_wheels",
        "WHEEL_MAX_BYTES": 536870912,
        "WHEEL_SYNC_ENABLED": False,
        "WHEEL_SYNC_DIR": ".tsuzuki/wheels",
        "WHEEL_SYNC_INTERVAL_SEC": 10.0,
        "WHEEL_INSTALL_TIMEOUT_SEC": 180.0,
        "WHEEL_HISTORY_KV_BUCKET": "tsuzuki_wheel_history",
        "WHEEL_HISTORY_TTL_SEC": 7776000,
        "WORKFLOW_YAML_MAX_BYTES": 262144,
        "DASHBOARD_LANG": "auto",
        "LOAD_DOTENV": True,
        "ENV_FILE": ".env",
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "json",
        "LOG_UTC": True,
        "LOG_INCLUDE_TRACEBACK": True,
    }
    assert {name: settings.value(f"TSUZUKI_{name}") for name in expected} == expected


def test_a_word_for_auth_that_nobody_understands_does_not_open_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.gateway()["auth"] is False
    monkeypatch.setenv("TSUZUKI_HTTP_AUTH", "API_KEY")
    assert settings.gateway()["auth"] is True
    monkeypatch.setenv("TSUZUKI_HTTP_AUTH", "keys please")
    with pytest.raises(BadUsage, match="must be none or api_key"):
        settings.gateway()
