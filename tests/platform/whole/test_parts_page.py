"""The commands of docs/parts.md that need a running stack."""

import re

import pytest
from tests.patience import PATIENCE_S
from tests.platform.parts_page import STACK_LINES, parse_arguments
from tests.platform.whole.scratch_stack import ScratchStack, poll_until

pytestmark = pytest.mark.whole

DIFFERS = "penstock topics plan --environment production"
"""It exits with 1, because a local stack has another topic layout."""
AUDIT = "penstock audit sensor_minute"
"""`test_audit.py` runs this command."""


def test_every_command_of_the_page_has_output(running: ScratchStack) -> None:
    poll_until(
        (running.warehouse / "panes" / "sensor_minute" / "_delta_log").exists, PATIENCE_S, "the first panes"
    )
    batch = running.batch()
    poll_until(lambda: running.batch() > batch, PATIENCE_S, "their batch to be in the ledger, too")
    outputs = {}
    for line in STACK_LINES:
        if line != AUDIT:
            poll_until(running.ready, PATIENCE_S, "everything to run")
            result = running.run(*parse_arguments(line), seconds=PATIENCE_S)
            assert result.returncode == (1 if line == DIFFERS else 0), (
                f"{line}: {result.stderr}{result.stdout}"
            )
            assert result.stdout.strip(), line
            outputs[line] = result.stdout
    assert "partitions: 3 -> 12" in outputs[DIFFERS]
    assert re.search(r"^sensors +3 +1 +7 days +[\d,]+$", outputs["penstock topics list"], re.MULTILINE)
    assert len(outputs["penstock topics list sensors"].splitlines()) == 4
    assert len(outputs["penstock consume sensors --group twice --count 3"].splitlines()) >= 3
