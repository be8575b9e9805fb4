"""A power cut at any operation of a run is followed by the tables of a run that was not cut.

This is the short form; `make power-cuts` runs the long one.
"""

import random

import pytest
from tests.pipelines.engine.batch.test_crashes import PLANS
from tests.pipelines.engine.power.power_cuts import record_run, sample_crashes

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.plan.stages import Plan

SEED = 19
CRASHES = 12


@pytest.mark.parametrize("plan", [PLANS["fixed"]], ids=["fixed"])
def test_a_start_after_a_power_cut_gives_the_tables_of_an_uncut_run(plan: Plan) -> None:
    with record_run(plan) as run:
        for crash in sample_crashes(run, random.Random(SEED), CRASHES):
            fault = run.find_fault(crash)
            assert not fault, f"seed {SEED}\n{run.shrink(crash).describe()}\n{fault}"


def test_everything_that_an_outcome_names_is_synced_before_the_outcome_has_its_name() -> None:
    with record_run(PLANS["two stages"]) as run:
        outcome_count = 0
        for state in run.disk.states:
            if state.operation.startswith("link") and state.operation.endswith("outcome.json"):
                outcome_count += 1
                unsynced = {node for node, file in state.files.items() if file.synced is None}
                names = {
                    name
                    for folder in state.folders.values()
                    for name, node in folder.current.items()
                    if node in unsynced or folder.synced.get(name) != node
                }
                assert {name for name in names if not name.endswith((".partial", ".tmp"))} <= {
                    state.operation.rpartition("/")[2]
                }
        assert outcome_count == 6


def test_without_syncs_a_cut_is_found_by_the_same_search() -> None:
    with record_run(PLANS["fixed"], syncs=False) as run:
        crashes = sample_crashes(run, random.Random(SEED), 60)
        assert any(run.find_fault(crash) for crash in crashes)


def test_a_journal_reads_files_without_a_checksum() -> None:
    with record_run(PLANS["fixed"]) as run:
        journal = run.disk.root / "stream" / "journal"
        outcomes = list(BatchJournal(journal).read_outcomes())
        for path in journal.glob("*.json"):
            path.write_bytes(path.read_bytes().splitlines()[0])
        assert list(BatchJournal(journal).read_outcomes()) == outcomes
