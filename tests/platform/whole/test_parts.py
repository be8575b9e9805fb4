"""Lines of the page of parts that look at a stack which runs, and what they show of it."""

import re

import pytest
from tests.platform.parts_page import STACK_LINES, parse_arguments
from tests.platform.whole.stack import ScratchStack, until

pytestmark = pytest.mark.whole

DIFFERS = "penstock topics plan --environment production"
"""It ends with 1, for a stack on one machine is laid out otherwise."""
AUDIT = "penstock audit sensor_minute"
"""`test_audit.py` beside this runs it, on a stream that nobody steers meanwhile."""


def test_every_line_about_a_running_stack_shows_something(running: ScratchStack) -> None:
    until((running.warehouse / "panes" / "sensor_minute" / "_delta_log").exists, 60, "the first panes")
    batch = running.batch()
    until(lambda: running.batch() > batch, 60, "their batch to be in the ledger, too")
    said = {}
    for line in STACK_LINES:
        if line != AUDIT:
            until(running.ready, 60, "everything to run")
            done = running.run(*parse_arguments(line), seconds=120)
            assert done.returncode == (1 if line == DIFFERS else 0), f"{line}: {done.stderr}{done.stdout}"
            assert done.stdout.strip(), line
            said[line] = done.stdout
    assert "partitions: 3 -> 12" in said[DIFFERS]
    assert re.search(r"^sensors +3 +1 +7 days +[\d,]+$", said["penstock topics list"], re.MULTILINE)
    assert len(said["penstock topics list sensors"].splitlines()) == 4
    assert len(said["penstock consume topic sensors --group twice --count 3"].splitlines()) >= 3
