"""A short soak: after a minute of random kills and pauses, every record is in every table once.

`tests/benchmarks/soak.py` runs it for any time.
"""

import random

import pytest
from tests.patience import PATIENCE_S
from tests.platform.whole.random_kills import Disturbance
from tests.platform.whole.scratch_stack import ScratchStack, poll_until
from tests.platform.whole.stack_processes import check_exactness
from tests.platform.whole.table_comparison import check_audit, wait_for_archive, wait_for_balance

pytestmark = pytest.mark.whole

SEED, SECONDS, BETWEEN, LEASE_SECONDS = 7, 45.0, 4.0, 5.0


def test_after_random_kills_and_pauses_every_record_is_in_every_table_once(own_stack: ScratchStack) -> None:
    own_stack.environment["PENSTOCK_HOST__LEASE_TIMEOUT"] = f"{LEASE_SECONDS}s"
    own_stack.up()
    poll_until(lambda: own_stack.batch("archive-sensors") >= 0, PATIENCE_S, "the archive")
    disturbance = Disturbance(own_stack, random.Random(SEED), BETWEEN, max_pause_s=2 * LEASE_SECONDS)
    disturbance.run(SECONDS)
    print(f"seed {SEED}: {dict(disturbance.counts)}")
    counts = check_exactness(own_stack)
    assert counts.windows
    assert counts.materializations
    with own_stack.without_feed():
        wait_for_balance(own_stack)
        wait_for_archive(own_stack)
        check_audit(own_stack)
    assert disturbance.counts.total() > 5, "too few disturbances"
