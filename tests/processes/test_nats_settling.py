"""Servers that catch up for a moment are not called unwell."""

from tsuzuki.servers.configuration import Told
from tsuzuki.servers.examining import examined
from tsuzuki.servers.looking import LOOKS, Seen, SeenServer, _servers, settled


def seen(state: str) -> Seen:
    servers = (
        SeenServer(name="one", leads=True),
        SeenServer(name="two"),
        SeenServer(name="three", state=state, silent=9.0),
    )
    return Seen(url="nats://one", version="2.12.0", servers=servers, streams=(), storage=0, max_storage=-1)


class Looks:
    """Shows one state after the other, and the last one for ever."""

    def __init__(self, *states: str) -> None:
        self.count, self._states = 0, states

    async def __call__(self) -> Seen:
        self.count += 1
        return seen(self._states[min(self.count, len(self._states)) - 1])


async def test_a_server_that_has_caught_up_at_the_next_look_is_well() -> None:
    looks = Looks("behind", "behind", "up", "behind")
    assert all(check.ok for check in examined(await settled(looks, pause=0)))
    assert looks.count == 3


async def test_a_server_that_stays_behind_is_told_of() -> None:
    looks = Looks("behind")
    [wrong] = [check for check in examined(await settled(looks, pause=0)) if not check.ok]
    assert wrong.text == "not yet caught up: three (0 writes)"
    assert wrong.do == "wait until they have caught up", "nobody is taken out for that"
    assert looks.count == LOOKS + 1


async def test_a_server_that_is_offline_is_told_of_at_once() -> None:
    looks = Looks("offline")
    assert not all(check.ok for check in examined(await settled(looks, pause=0)))
    assert looks.count == 1


def test_what_one_that_does_not_lead_has_not_heard_of_others_does_not_count_against_them() -> None:
    told = {"leader": "two", "replicas": [{"name": "three", "current": False}, {"name": "two", "current": True}]}
    connected = {"one", "two", "three"}

    def state(here: str, lag: int = 0) -> str:
        told["replicas"] = [{"name": "three", "current": False, "lag": lag}]
        seen = _servers(told, [], Told(name=here, cluster="c"), connected)
        return {server.name: server.state for server in seen}["three"]

    assert state("one") == "up"
    assert state("two", lag=3) == "behind", "the leader knows"
    connected.remove("three")
    assert state("one") == "offline"
