"""An audit beside a stream that commits, prunes and is killed accuses nothing that is right."""

import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from tests.examples import scale_examples
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import SimulatedKill
from tests.quality.audit.live_stream import run_live_stream
from tests.quality.audit.recorded_stream import create_scope, judge_stream, run_stream

from penstock.engine.batch import journal as journal_module
from penstock.engine.batch.journal import BatchJournal, read_retained_outcomes
from penstock.engine.batch.outcome import BatchOutcome
from penstock.quality.audit.checks.agreement_check import check_agreement
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.runner import run_audit
from penstock.quality.audit.scope import AuditScope

LAST_BATCH = 5
AUDITS = 12
JOURNAL_READS = 300


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A finished stream."""
    return run_stream(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def audited(finished: Bench, tmp_path: Path) -> AuditScope:
    """The finished stream with a journal of its own."""
    scope = create_scope(finished)
    shutil.copytree(scope.journal, tmp_path / "journal")
    return replace(scope, journal=tmp_path / "journal")


@pytest.mark.parametrize("reads_before", range(LAST_BATCH + 1))
@pytest.mark.parametrize("first_retained", range(1, LAST_BATCH + 1))
def test_a_journal_that_is_pruned_while_it_is_read_has_no_gap(
    audited: AuditScope, reads_before: int, first_retained: int
) -> None:
    """The audit said "the ledger has it, but the journal does not" of a healthy stream."""
    read_file, reads = journal_module._read_outcome_file, 0

    def prune_between_reads(path: Path) -> BatchOutcome:
        nonlocal reads
        reads += 1
        if reads == reads_before + 1:
            BatchJournal(audited.journal).forget_before(first_retained)
        return read_file(path)

    with mock.patch.object(journal_module, "_read_outcome_file", prune_between_reads):
        outcome = check_agreement(audited)
    assert outcome.state == "passed", outcome.summary


@pytest.mark.parametrize("removals", range(2 * LAST_BATCH))
def test_a_prune_that_is_killed_leaves_no_gap(audited: AuditScope, removals: int) -> None:
    unlink, done = Path.unlink, 0

    def unlink_until_killed(path: Path, missing_ok: bool = False) -> None:
        nonlocal done
        if done == removals:
            raise SimulatedKill
        done += 1
        unlink(path, missing_ok=missing_ok)

    with mock.patch.object(Path, "unlink", unlink_until_killed), suppress(SimulatedKill):
        BatchJournal(audited.journal).forget_before(LAST_BATCH)
    outcome = check_agreement(audited)
    assert outcome.state == "passed", outcome.summary


def test_a_lost_outcome_between_others_is_still_found(audited: AuditScope) -> None:
    remove_outcome(audited)
    outcome = check_agreement(audited)
    assert outcome.summary == "records/0, batch 3: the ledger has it, but the journal does not"


def test_reads_beside_a_process_that_prunes_and_is_killed_have_no_gap(audited: AuditScope) -> None:
    writer = start_writer(audited.journal)
    try:
        for number in range(scale_examples(JOURNAL_READS)):
            if number % 100 == 99:
                stop_writer(writer)
                writer = start_writer(audited.journal)
            ids = [outcome.batch_id for outcome in read_retained_outcomes(audited.journal)]
            assert ids == list(range(ids[0], ids[-1] + 1))
        assert ids[-1] > LAST_BATCH
    finally:
        stop_writer(writer)


def test_audits_beside_a_stream_that_is_killed_find_nothing(tmp_path: Path) -> None:
    for seed in range(scale_examples(1)):
        with run_live_stream(tmp_path / str(seed), seed) as stream:
            audits = 0
            while not stream.failures and (audits < AUDITS or not stream.kills):
                if stream.reports:
                    audits += 1
                    assert {verdict.state for verdict in judge_stream(stream.create_scope())} == {"passed"}, (
                        seed
                    )


def test_differences_are_withdrawn_if_the_stream_was_rewritten_meanwhile(audited: AuditScope) -> None:
    """A replay or an erasure changes tables that an audit has read in part."""
    remove_outcome(audited)
    rewritten = replace(
        audited, describe_rewrite=lambda upto: f"batch {upto + 1} (erase) changed earlier results"
    )
    with mock.patch("penstock.quality.audit.runner._run_checks", lambda scope, _: iter(judge_stream(scope))):
        failed, unproven = (run_audit(each, Sample()) for each in (audited, rewritten))
    assert failed.first_difference is not None
    assert unproven.first_difference is None
    verdicts = {verdict.check: verdict for verdict in unproven.verdicts}
    assert verdicts["agreement"].state == "unproven"
    reason = "batch 6 (erase) changed earlier results during the audit; audit it again"
    assert verdicts["agreement"].summary == reason


def remove_outcome(scope: AuditScope) -> None:
    (scope.journal / f"{3:012d}.outcome.json").unlink()


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from penstock.engine.batch.journal import BatchJournal
journal = BatchJournal.open_for_writing(Path(sys.argv[1]), syncs=False)
outcome = journal.read_last_outcome()
print("writing", flush=True)
while True:
    outcome = journal.commit_outcome(replace(outcome, batch_id=outcome.batch_id + 1))
    if outcome.batch_id % 4 == 0:
        journal.forget_before(outcome.batch_id - 6)
"""


def start_writer(journal: Path) -> "subprocess.Popen[bytes]":
    """Start a process that commits outcomes and prunes as fast as it can."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(journal)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"writing\n"
    return writer


def stop_writer(writer: "subprocess.Popen[bytes]") -> None:
    """Kill the process wherever it is."""
    writer.kill()
    writer.communicate()
