"""What the environment says, and what is made of it when it makes no sense."""

import logging
import re
from pathlib import Path

import pytest

from tsuzuki import settings
from tsuzuki.backends.nats.options import Options

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def test_what_is_unset_leaves_the_defaults_to_the_store() -> None:
    assert settings.work_queue() == {}
    assert settings.default_tag() == "default"
    assert settings.worker_disconnect_timeout() == 20.0


def test_every_setting_of_the_work_queue_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
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
    both = f"{settings.lease(one_machine=True):g}; on NATS {settings.lease(one_machine=False):g}"
    assert re.search(rf"^\| `TSUZUKI_LEASE_SECONDS` .*\| {both} \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("value", ["x", "nan", "inf", "0", "-1"])
@pytest.mark.parametrize(("name", "default"), [("LEASE_SECONDS", 6.0), ("GRACE_SECONDS", 30.0)])
def test_a_bad_lease_or_grace_period_is_told_of_with_what_holds_instead(
    name: str, default: float, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(f"TSUZUKI_{name}", value)
    with caplog.at_level(logging.WARNING, "tsuzuki.settings"):
        found = settings.lease(one_machine=False) if name == "LEASE_SECONDS" else settings.grace_period()
    assert found == default
    assert f"TSUZUKI_{name}={value!r} is ignored, its default {default:g} holds" in caplog.text
