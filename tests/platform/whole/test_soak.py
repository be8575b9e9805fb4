"""The soak, compressed: whatever is killed or put to sleep within a minute, everything is there once afterwards.

`tests/benchmarks/soak.py` is the same for as long as one asks.
"""

import random

import pytest
from tests.platform.whole.books import archived, audited, balanced
from tests.platform.whole.disturbing import Disturbance
from tests.platform.whole.killing import exact
from tests.platform.whole.stack import ScratchStack, until

pytestmark = pytest.mark.whole

SEED, SECONDS, BETWEEN, LEASE_SECONDS = 7, 45.0, 4.0, 5.0


@pytest.mark.timeout(600)
def test_after_a_minute_of_kills_and_sleeps_every_record_is_in_every_table_once(own: ScratchStack) -> None:
    own.environment["PENSTOCK_HOST__LEASE_TIMEOUT"] = f"{LEASE_SECONDS}s"
    own.up()
    until(lambda: own.batch("archive-sensors") >= 0, 60, "the archive")
    disturbance = Disturbance(own, random.Random(SEED), BETWEEN, longest_pause=2 * LEASE_SECONDS)
    disturbance.go_on(SECONDS)
    print(f"seed {SEED}: {dict(disturbance.done)}")
    found = exact(own)
    assert found.windows
    assert found.told
    with own.without_feed():
        balanced(own)
        archived(own)
        audited(own)
    assert disturbance.done.total() > 5, "hardly anything happened"
