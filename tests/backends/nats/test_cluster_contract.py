"""Three replicas keep the core of the contract: fenced appends, claims, keys and requests."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from tests.nats_cluster import Cluster
from tsuzuki.backends import Backend
from tsuzuki.backends.nats import NatsBackend
from tsuzuki.testing.clock import ShiftedClock
from tsuzuki.testing.contract.journal import JournalContract
from tsuzuki.testing.contract.queue import QueueContract
from tsuzuki.testing.contract.requests import KeysContract, RequestsContract

pytestmark = [pytest.mark.xdist_group("nats cluster"), pytest.mark.asyncio]

_stores = count(1)


J, Q, K, R = JournalContract, QueueContract, KeysContract, RequestsContract


class TestThreeReplicas:
    """What is fenced or exclusive; the rest of the contract does not depend on how many servers keep it."""

    test_positions_have_no_gaps = J.test_positions_have_no_gaps_when_many_append_at_once
    test_a_refused_fact_keeps_out_its_batch = J.test_a_refused_fact_keeps_out_its_whole_batch
    test_a_refused_append_does_no_harm = J.test_a_refused_append_does_no_harm_to_others_under_way
    test_a_claim_is_lost_to_a_newer_one = J.test_a_claim_is_lost_when_a_newer_one_was_given
    test_a_claim_is_lost_to_ourselves = J.test_a_claim_is_lost_when_the_same_worker_claimed_again
    test_a_claim_is_lost_after_its_release = J.test_a_claim_is_lost_after_its_release
    test_a_claim_is_lost_after_the_end = J.test_a_claim_is_lost_after_the_end
    test_the_first_outcome_of_an_item_wins = J.test_the_first_outcome_of_an_item_wins
    test_many_facts_are_fetched_at_once = J.test_many_facts_are_fetched_at_once
    test_runs_are_given_by_priority_and_age = Q.test_runs_are_given_by_priority_and_then_by_age
    test_many_workers_never_get_the_same_run = Q.test_many_workers_never_get_the_same_run
    test_no_two_claims_share_an_attempt = Q.test_no_two_claims_of_a_run_share_an_attempt
    test_a_run_that_only_kills_is_failed = Q.test_a_run_that_only_kills_its_workers_is_failed
    test_a_key_is_held = K.test_a_key_is_held_while_the_run_runs_and_while_it_is_cancelled
    test_one_of_fifty_gets_the_key = K.test_one_of_fifty_simultaneous_submissions_gets_the_key
    test_fifty_with_an_idempotency_key_make_one_run = (
        K.test_fifty_simultaneous_submissions_with_an_idempotency_key_make_one_run
    )
    test_a_key_taken_meanwhile_stops_a_resume = R.test_a_run_whose_key_was_taken_meanwhile_is_not_resumed

    @pytest.fixture
    def clock(self) -> ShiftedClock:
        return ShiftedClock()

    @pytest_asyncio.fixture
    async def backend(self, clock: ShiftedClock, cluster: Cluster) -> AsyncIterator[Backend]:
        store = await NatsBackend.open(cluster.url, clock=clock, prefix=f"c{next(_stores)}")
        yield store
        await store.remove()
        await store.close()
