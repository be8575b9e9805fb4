"""The audit checks that need neither a broker nor Spark."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain as one_after_another
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.engine.errors import JournalError
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.plan.sinks import PaneContent
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.ingestion.ledger import read_ledger_state
from penstock.quality.audit.account_agreement import (
    accounts_from_batches,
    accounts_from_ledger,
    check_batch_sequence,
    compare_accounts,
    compare_batch_fields,
)
from penstock.quality.audit.comparability import can_multiply_records
from penstock.quality.audit.decision_checks import OffsetReach, check_decisions
from penstock.quality.audit.ledger_continuity import check_continuity, check_sums
from penstock.quality.audit.pane_counts import check_pane_counts
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.side_tables import ADDRESS_COLUMNS, check_side_table
from penstock.quality.audit.table_integrity import check_table_files
from penstock.quality.audit.verdict import AuditDifference, AuditVerdict, judge_differences, unproven_verdict
from penstock.quality.ledger_rows import group_by_partition
from penstock.quality.quarantine.decisions import DecisionLog
from penstock.quality.quarantine.quarantined_records import read_quarantine
from penstock.quality.quarantine.record_status import build_statuses, count_states, read_delivered_addresses
from penstock.quality.table_reads import read_required_rows


def check_files(scope: AuditScope) -> AuditVerdict:
    """Every table is complete: it exists, its files exist with their size, and no batch was committed twice."""
    differences = one_after_another(
        find_missing_tables(scope),
        *(
            check_table_files(scope.warehouse / table, table, scope.table_requirements(table))
            for table in scope.tables
        ),
    )
    return judge_differences(
        "files", differences, f"{len(scope.tables)} tables are complete, and each batch was committed once"
    )


def find_missing_tables(scope: AuditScope) -> Iterator[AuditDifference]:
    """Yield the required tables that do not exist.

    The journal tells which tables are required. A journal that cannot be read is a difference itself.
    """
    try:
        required_tables = scope.required_tables
    except JournalError as problem:
        yield AuditDifference(f"journal of {scope.plan.name}", str(problem))
        return
    for table in sorted(required_tables):
        if not (scope.warehouse / table / "_delta_log").exists():
            yield AuditDifference(
                table, f"table is missing, but {scope.plan.name} has written up to batch {scope.upto}"
            )


def check_offset_ranges(scope: AuditScope) -> AuditVerdict:
    """The offset ranges of each partition are contiguous."""
    ledger_bounds = scope.ledger.group_by(["topic", "partition"]).aggregate(
        [("start", "min"), ("end", "max")]
    )
    bounds_text = ", ".join(
        f"{row['topic']}/{row['partition']} from {row['start_min']} to {row['end_max']}"
        for row in ledger_bounds.sort_by([("topic", "ascending"), ("partition", "ascending")]).to_pylist()
    )
    differences = one_after_another.from_iterable(
        label_stage(scope, stage, check_continuity(scope.stage_ledger(stage)))
        for stage in scope.plan.source_stages
    )
    return judge_differences("offset ranges", differences, f"no gap or overlap: {bounds_text}")


def check_accounts(scope: AuditScope) -> AuditVerdict:
    """Every record that was read has exactly one fate."""
    counts = {name: pc.sum(scope.ledger.column(name)).as_py() or 0 for name in ("read", *RECORD_FATES)}
    fates_text = " + ".join(f"{counts[name]:,} {name}" for name in RECORD_FATES)
    differences = one_after_another.from_iterable(
        label_stage(scope, stage, check_sums(scope.stage_ledger(stage))) for stage in scope.plan.source_stages
    )
    return judge_differences("accounts", differences, f"{counts['read']:,} read = {fates_text}")


def label_stage(
    scope: AuditScope, stage: Stage, differences: Iterator[AuditDifference]
) -> Iterator[AuditDifference]:
    """Prefix the location of differences with the stage, except for the first source stage."""
    for difference in differences:
        yield (
            difference
            if stage == scope.plan.first_source_stage
            else replace(difference, location=f"{stage.name}: {difference.location}")
        )


def check_agreement(scope: AuditScope) -> AuditVerdict:
    """The stream ledger, the control store and the journal agree on every batch."""
    ledger_accounts = accounts_from_ledger(scope.ledger)
    control_store_accounts = accounts_from_batches(
        (batch.batch_id, batch.accounts) for batch in scope.batches
    )
    outcomes = list(scope.outcomes())
    journal_accounts = [(outcome.batch_id, outcome.accounts) for outcome in outcomes]
    differences = one_after_another(
        check_batch_sequence(scope.batches),
        compare_batch_fields(
            scope.batches, (to_batch_record(scope.plan.name, outcome) for outcome in outcomes)
        ),
        compare_accounts(ledger_accounts, control_store_accounts, "control store"),
        compare_accounts(ledger_accounts, accounts_from_batches(journal_accounts), "journal"),
    )
    success_text = (
        f"ledger and control store agree on {len(scope.batches)} batches, "
        f"ledger and journal on {len(journal_accounts)}"
    )
    return judge_differences("agreement", differences, success_text)


def check_late_and_quarantined(scope: AuditScope) -> AuditVerdict:
    """The tables of late and quarantined records have as many records as the ledger counts."""
    differences = one_after_another.from_iterable(
        label_stage(scope, stage, _compare_side_tables(scope, stage)) for stage in scope.plan.source_stages
    )
    late_count = sum(scope.stage_late_rows(stage).num_rows for stage in scope.plan.source_stages)
    success_text = (
        f"{late_count:,} late and {scope.quarantined_rows.num_rows:,} quarantined rows match the ledger"
    )
    return judge_differences("late and quarantined", differences, success_text)


def _compare_side_tables(scope: AuditScope, stage: Stage) -> Iterator[AuditDifference]:
    ledger = scope.stage_ledger(stage)
    is_own_topic = pc.is_in(scope.quarantined_rows.column("topic"), pc.unique(ledger.column("topic")))
    yield from check_side_table(
        ledger,
        scope.stage_late_rows(stage),
        "late",
        _row_identity(stage),
        allow_more=_can_exceed_count(stage),
    )
    yield from check_side_table(ledger, scope.quarantined_rows.filter(is_own_topic), "quarantined")


def _row_identity(stage: Stage) -> tuple[str, ...] | None:
    """Return the columns that identify a late row; None if a step may make equal rows of one record."""
    if can_multiply_records(stage):
        return None
    return (*ADDRESS_COLUMNS, "window_start") if stage.window.may_overlap else tuple(ADDRESS_COLUMNS)


def _can_exceed_count(stage: Stage) -> bool:
    """Tell whether one window may accept a record that is late for another window or key."""
    return stage.window.may_overlap or can_multiply_records(stage)


def check_quarantine(scope: AuditScope) -> AuditVerdict:
    """Decisions on quarantined records were carried out, and every record has a state."""
    differences: list[AuditDifference] = []
    state_counts: Counter[str] = Counter()
    for topic in scope.topics:
        decisions = DecisionLog(scope.decisions_folder / f"{topic}.jsonl").read_all()
        ledger = scope.producer_ledgers.get(f"quarantine-{topic}")
        records = read_quarantine(scope.warehouse, topic)
        delivered = {} if ledger is None else read_delivered_addresses(ledger)
        sent_count = 0 if ledger is None else read_ledger_state(ledger).acknowledged_until
        differences += check_decisions(
            topic, records, decisions, sent_count, partial(_ledger_reach, scope, topic)
        )
        state_counts.update(count_states(build_statuses(records, decisions, delivered)))
    success_text = " + ".join(f"{count} {state}" for state, count in state_counts.items())
    return judge_differences(
        "quarantine", differences, f"{state_counts.total()} quarantined = {success_text}"
    )


def _ledger_reach(scope: AuditScope, topic: str) -> OffsetReach:
    """Return the offsets of a topic that the stream ledger covers, by partition."""
    return {
        partition: (pc.min(rows.column("start")).as_py(), pc.max(rows.column("end")).as_py())
        for (topic_name, partition), rows in group_by_partition(scope.ledger)
        if topic_name == topic
    }


def check_panes(scope: AuditScope) -> AuditVerdict:
    """Pane tables have as many rows as each batch reports, over all stages together."""
    logs_by_output = [tables for stage in scope.plan.stages for tables in list_pane_logs(stage)]
    if not all(logs_by_output):
        return unproven_verdict(
            "panes", "a batch counts the panes of all stages, but not every stage has a pane log"
        )
    comparisons = (_compare_pane_counts(scope, tables) for tables in product(*logs_by_output))
    table_names = ", ".join(table for tables in logs_by_output for table in tables)
    return judge_differences(
        "panes", one_after_another.from_iterable(comparisons), f"{table_names} match the counts of each batch"
    )


def list_pane_logs(stage: Stage) -> list[list[str]]:
    """Return the pane log tables for each output of a stage; most stages have one output."""
    logs = [sink for sink in stage.sinks if sink.is_delta_table and sink.content is PaneContent.ALL]
    named_outputs = stage.window.outputs if isinstance(stage.window, StatefulFunction) else ()
    return [
        [log.path for log in logs if log.output == output]
        for output in (None, *(output_name.name for output_name in named_outputs))
    ]


def _compare_pane_counts(scope: AuditScope, tables: Sequence[str]) -> Iterator[AuditDifference]:
    columns = ["batch_id", "timing", "kind"]
    pane_rows = pa.concat_tables(
        [read_required_rows(scope.warehouse / table, scope.upto, columns) for table in tables]
    )
    starts_after = max(map(scope.table_starts_after, tables))
    batches = [batch for batch in scope.batches if batch.batch_id > starts_after]
    return check_pane_counts(batches, pane_rows, ", ".join(tables)) if batches else iter(())


STREAM_CHECKS: tuple[tuple[str, Callable[[AuditScope], AuditVerdict]], ...] = (
    ("files", check_files),
    ("offset ranges", check_offset_ranges),
    ("accounts", check_accounts),
    ("agreement", check_agreement),
    ("late and quarantined", check_late_and_quarantined),
    ("panes", check_panes),
    ("quarantine", check_quarantine),
)
