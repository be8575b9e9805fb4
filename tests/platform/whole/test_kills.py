"""Each program is killed while records flow; table, topic and Dagster stay exact.

`tests/benchmarks/soak.py` does this at random to every process, for any time.
"""

import os
import signal

import pytest
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import ScratchStack, poll_until
from tests.platform.whole.stack_processes import check_exactness

pytestmark = pytest.mark.whole

ROUNDS = (("host", "daemon"), ("broker", "webserver"), ("feed", "code"), ("manager",))
"""Programs that are killed together: pairs that do not depend on each other."""


def test_after_kills_each_record_is_counted_and_each_batch_reported_once(own_stack: ScratchStack) -> None:
    own_stack.up()
    for victims in ROUNDS:
        batch, pids = own_stack.batch(), own_stack.pids()
        killed = {victim: pids[victim] for victim in victims}
        for pid in killed.values():
            os.kill(pid, signal.SIGKILL)
        poll_until(lambda: is_restarted(own_stack, killed), PATIENCE_S, f"{victims} to be back")  # noqa: B023  used before the next
        poll_until(lambda: own_stack.batch() > batch + 2, PATIENCE_S, f"batches after {victims} were killed")  # noqa: B023
    counts = check_exactness(own_stack)
    assert counts.windows
    assert counts.materializations


def is_restarted(stack: ScratchStack, killed: dict[str, int]) -> bool:
    """Whether the killed programs run as new processes, and all others run."""
    pids_now = stack.pids()
    return all(pids_now.get(program, pid) != pid for program, pid in killed.items()) and stack.ready()
