"""After a power cut, decisions are there as their calls returned; those of a call that was cut, all or none.

This is the short form; `make power-cuts` runs the long one.
"""

import random
from pathlib import Path

from tests.examples import scale_examples
from tests.pipelines.engine.power.power_cuts import sample_crashes
from tests.quality.quarantine.decision_cuts import record_decisions

from penstock.quality.errors import QuarantineError
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision

SEED = 21
CRASHES = 300
DECISION = QuarantineDecision("replayed", 0, 7, 1_000, value=b"repaired")


def test_decisions_survive_a_power_cut() -> None:
    """Lines that a cut had torn in the middle were refused for good, though no command had reported them."""
    with record_decisions(random.Random(SEED)) as run:
        for crash in sample_crashes(run, random.Random(SEED), scale_examples(CRASHES)):
            fault = run.find_fault(crash)
            assert not fault, f"seed {SEED}\n{run.shrink(crash).describe()}\n{fault}"


def test_every_flipped_bit_in_decisions_is_found(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "sensors.jsonl")
    log.record([DECISION])
    content = log.path.read_bytes()
    for position in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[position // 8] ^= 1 << position % 8
        log.path.write_bytes(flipped)
        try:
            found = log.read_all()
        except QuarantineError:
            continue
        assert found == [DECISION], f"bit {position}"


def test_decisions_of_release_0_1_0_are_read_and_continued(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "sensors.jsonl")
    log.record([DECISION])
    log.path.write_bytes(log.path.read_bytes().splitlines()[0] + b'\n{"torn')
    assert log.read_all() == [DECISION]
    later = QuarantineDecision("discarded", 0, 8, 1_000)
    assert log.record([DECISION, later]) == [later]
    assert log.read_all() == [DECISION, later]
