"""Each process is killed in turn while records flow; the table equals what the broker acknowledged."""

import os
import signal

import pytest
from tests.platform.whole.expected import settled
from tests.platform.whole.stack import ScratchStack, until

from penstock.ingestion.ledger import read_addresses

pytestmark = pytest.mark.whole

VICTIMS = ("host", "broker", "feed", "daemon", "webserver", "code", "manager")


@pytest.mark.timeout(600)
def test_whatever_is_killed_the_table_holds_what_was_acknowledged(own: ScratchStack) -> None:
    own.up()
    for victim in VICTIMS:
        batch, pid = own.batch(), own.pids()[victim]
        os.kill(pid, signal.SIGKILL)
        until(lambda: back(own, victim, pid), 120, f"{victim} to be back")  # noqa: B023  used before the next
        until(lambda: own.batch() > batch + 2, 60, f"batches after {victim} was killed")  # noqa: B023
    with own.without_feed():
        assert settled(own)
        in_topic = {(partition, offset) for partition, offset, _, _ in own.records("sensors")}
        acknowledged = {
            (one.partition, one.offset) for one in read_addresses(own.home / "producers" / "sensors-1")
        }
        assert acknowledged <= in_topic
        ids = own.values()
        assert len(ids) == len(set(ids)), "a record is in the topic twice"


def back(stack: ScratchStack, program: str, killed: int) -> bool:
    """Whether a program runs again, as another process, and all the others run."""
    return stack.ready() and stack.pids().get(program, killed) != killed
