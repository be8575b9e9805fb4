"""Each program is killed in turn while records flow; table, topic and Dagster tell of everything, once.

`tests/benchmarks/soak.py` does this at random, for as long as asked, to every process.
"""

import os
import signal

import pytest
from tests.platform.whole.killing import exact
from tests.platform.whole.stack import ScratchStack, until

pytestmark = pytest.mark.whole

ROUNDS = (("host", "daemon"), ("broker", "webserver"), ("feed", "code"), ("manager",))
"""What is killed at once: two that have nothing to say to each other are waited for together."""


@pytest.mark.timeout(600)
def test_whatever_is_killed_each_record_is_counted_once_and_each_batch_told_once(own: ScratchStack) -> None:
    own.up()
    for victims in ROUNDS:
        batch, pids = own.batch(), own.pids()
        killed = {victim: pids[victim] for victim in victims}
        for pid in killed.values():
            os.kill(pid, signal.SIGKILL)
        until(lambda: back(own, killed), 120, f"{victims} to be back")  # noqa: B023  used before the next
        until(lambda: own.batch() > batch + 2, 60, f"batches after {victims} were killed")  # noqa: B023
    found = exact(own)
    assert found.windows
    assert found.told


def back(stack: ScratchStack, killed: dict[str, int]) -> bool:
    """Whether programs run again, as other processes, and all the others run."""
    now = stack.pids()
    return all(now.get(program, pid) != pid for program, pid in killed.items()) and stack.ready()
