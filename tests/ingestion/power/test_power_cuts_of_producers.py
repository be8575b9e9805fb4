"""After a power cut, a producer delivers each record of its source once, or its ledger is refused.

This is the short form; `make power-cuts` runs the long one.
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from tests.examples import scale_examples
from tests.ingestion.power.broker_model import BrokerModel
from tests.ingestion.power.producer_cuts import (
    RECORD_COUNT,
    TOPICS,
    ProducerRun,
    find_wrong_delivery,
    record_producer,
    run_session,
)
from tests.pipelines.engine.power.power_cuts import sample_crashes, scratch_folder

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.ledger.journal import DeliveryJournal
from penstock.ingestion.ledger.reader import list_segments

SEED = 20
CRASHES = 150
FLIPS = 200


@pytest.fixture(scope="module")
def recorded() -> Iterator[ProducerRun]:
    with record_producer(random.Random(SEED)) as run:
        yield run


def test_a_producer_delivers_each_record_once_after_a_power_cut(recorded: ProducerRun) -> None:
    for crash in sample_crashes(recorded, random.Random(SEED), scale_examples(CRASHES)):
        fault = recorded.find_fault(crash)
        assert not fault, f"seed {SEED}\n{recorded.shrink(crash).describe()}\n{fault}"


def test_acknowledgements_that_were_torn_together_are_asked_of_the_topic_again(recorded: ProducerRun) -> None:
    """A start refused the ledger: "an entry before the last one has a wrong checksum"."""
    groups = [
        crash
        for crash in sample_crashes(recorded, random.Random(1), 800)
        if "hole" in crash.contents.values()
    ]
    assert groups
    assert not any(recorded.find_fault(crash) for crash in groups)


def test_without_syncs_the_same_search_finds_records_twice() -> None:
    with mock.patch.object(DeliveryJournal, "sync"), record_producer(random.Random(SEED)) as run:
        faults = [run.find_fault(crash) for crash in sample_crashes(run, random.Random(SEED), 100)]
    assert any(fault.startswith("delivered twice") for fault in faults)


def test_a_flipped_bit_in_a_ledger_never_delivers_a_record_twice(tmp_path: Path) -> None:
    """A flipped length made the rest of a ledger look torn, and its records were sent again."""
    broker = BrokerModel(TOPICS, random.Random(SEED))
    run_session(tmp_path / "feed", broker, batches=RECORD_COUNT // 8)
    random_source, refused = random.Random(SEED), 0
    for _ in range(scale_examples(FLIPS)):
        with scratch_folder() as folder:
            shutil.copytree(tmp_path / "feed", folder / "feed")
            flip = flip_bit_before_last_entry(folder / "feed", random_source)
            rest = broker.copy_until(1, random_source)
            try:
                run_session(folder / "feed", rest, batches=RECORD_COUNT)
                fault = find_wrong_delivery(folder / "feed", rest)
            except LedgerError:
                refused += 1
            else:
                assert not fault, f"{flip}: {fault}"
    assert refused


def flip_bit_before_last_entry(folder: Path, random_source: random.Random) -> str:
    """Flip a bit, but not in the newest entry: a flip there looks like an entry that a power cut tore."""
    segment = list_segments(folder)[-1]
    content = bytearray(segment.read_bytes())
    ends = [0]
    while ends[-1] < len(content):
        ends.append(ends[-1] + 8 + int.from_bytes(content[ends[-1] : ends[-1] + 4], "little"))
    position, bit = random_source.randrange(ends[-2]), random_source.randrange(8)
    content[position] ^= 1 << bit
    segment.write_bytes(content)
    return f"{segment.name}, byte {position}, bit {bit}"
