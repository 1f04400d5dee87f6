"""What an address may say; what it may not is told in one line, by its name and with what is allowed."""

import subprocess
import sys

import pytest

from tsuzuki.backends.nats import NatsBackend, options
from tsuzuki.errors import BadUsage


def listed(url: str) -> list[str]:
    """Gives what people see of `tsuzuki list` on a store that cannot be opened."""
    command = [sys.executable, "-m", "tsuzuki.cli", "-q", "list", "--backend", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize("host", ["127.0.0.1:1", "no-such-host.invalid:4222"])
def test_a_server_that_is_not_there_costs_one_line(host: str) -> None:
    (line,) = listed(f"nats://{host}?connect_timeout=0.5")
    assert f"{host}?connect_timeout=0.5 cannot be reached" in line


def test_a_server_that_is_not_one_costs_one_line() -> None:
    (line,) = listed("nats://127.0.0.1:abc")
    assert "'127.0.0.1:abc' in nats://127.0.0.1:abc is no server; use HOST:PORT with a port from 1 to 65535" in line


@pytest.mark.parametrize("host", ["a:0", "a:65536", "a:-1", ":4222", "[::1", "a,b:x"])
async def test_a_host_or_port_that_there_cannot_be_is_refused(host: str) -> None:
    with pytest.raises(BadUsage, match="is no server; use HOST:PORT"):
        await NatsBackend.open(f"nats://{host}")


@pytest.mark.parametrize("host", ["a", "a:4222", "127.0.0.1:65535", "[::1]:4222", "[::1]", "me:pass@a,b:1"])
def test_hosts_with_and_without_ports_are_taken(host: str) -> None:
    assert options.parse(f"nats://{host}").servers


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ("timeout=-1", "seconds above 0"),
        ("timeout=0", "seconds above 0"),
        ("timeout=nan", "seconds above 0"),
        ("timeout=inf", "a year at most"),
        ("connect_timeout=-3", "seconds above 0"),
        ("patience=-1", "0 or above"),
        ("replicas=0", "a whole number from 1 to 5"),
        ("replicas=6", "a whole number from 1 to 5"),
        ("max_deliver=0", "a whole number above 0"),
        ("max_ack_pending=-1", "a whole number above 0"),
        ("max_bytes=-2", "or -1 for no limit"),
        ("max_log_bytes=-7", "or -1 for no limit"),
        ("ack_wait=-1", "seconds above 0"),
        ("ack_progress=0", "seconds above 0"),
    ],
)
async def test_a_number_that_makes_no_sense_is_refused(given: str, allowed: str) -> None:
    with pytest.raises(BadUsage, match=rf"{given} makes no sense: it must be .*{allowed}"):
        await NatsBackend.open(f"nats://127.0.0.1:1?{given}")


@pytest.mark.parametrize(("wait", "progress"), [(6, 2), (30, 10), (100, 10)])
def test_a_short_ack_wait_shortens_the_progress_interval_too(wait: float, progress: float) -> None:
    chosen = options.parse(f"nats://a?ack_wait={wait}")
    assert (chosen.ack_wait, chosen.ack_progress) == (wait, progress)
    assert options.parse(chosen.url) == chosen


def test_an_address_that_is_told_has_no_option_that_nobody_gave() -> None:
    chosen = options.parse("nats://me:pass@a?prefix=mine", timeout=2.0)
    assert chosen.timeout == 2.0
    assert chosen.url == "nats://a?prefix=mine&user=me"


def test_the_environment_may_shorten_the_ack_wait_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSUZUKI_CONSUMER_ACK_WAIT_SEC", "9")
    assert options.parse("nats://a").ack_progress == 3
