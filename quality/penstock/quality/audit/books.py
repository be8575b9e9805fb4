"""The checks that need no broker and no Spark: what the stream wrote about itself."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain as one_after_another
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from penstock.ingestion.ledger import read_state
from penstock.pipelines.errors import JournalError
from penstock.pipelines.host.telling import batch_record
from penstock.pipelines.plan import PaneLog, Remembering, Sliding, Stage
from penstock.quality.audit.agreement import accounts_in, accounts_of, agreement, moments, numbering
from penstock.quality.audit.chain import FATES, by_partition, chain, sums
from penstock.quality.audit.comparable import may_multiply
from penstock.quality.audit.pane_counts import pane_counts
from penstock.quality.audit.scope import Scope
from penstock.quality.audit.set_aside import ADDRESS, set_aside
from penstock.quality.audit.tables import needed, wholeness
from penstock.quality.audit.verdict import Difference, Verdict, judged, unproven
from penstock.quality.quarantine.accounts import Reach, mended
from penstock.quality.quarantine.decisions import Decisions
from penstock.quality.quarantine.records import quarantined
from penstock.quality.quarantine.standing import counts, delivered_by, standings


def files(scope: Scope) -> Verdict:
    """Every table is there, and every file that it names, as it was brought in; no batch came in twice."""
    found = one_after_another(
        missing(scope),
        *(wholeness(scope.warehouse / table, table, scope.due(table)) for table in scope.tables),
    )
    return judged("files", found, f"{len(scope.tables)} tables name what is there, and took each batch once")


def missing(scope: Scope) -> Iterator[Difference]:
    """Yield the tables that were made before the first batch was committed, and are not there.

    The journal says which these are: one that cannot be read is a difference itself.
    """
    try:
        made = scope.made
    except JournalError as problem:
        yield Difference(f"journal of {scope.plan.name}", str(problem))
        return
    for table in sorted(made):
        if not (scope.warehouse / table / "_delta_log").exists():
            yield Difference(
                table, f"{scope.plan.name} has written up to batch {scope.upto}, and there is no table"
            )


def ranges(scope: Scope) -> Verdict:
    """The ranges of each partition follow one another, without gap or overlap."""
    spans = scope.ledger.group_by(["topic", "partition"]).aggregate([("start", "min"), ("end", "max")])
    reach = ", ".join(
        f"{row['topic']}/{row['partition']} from {row['start_min']} to {row['end_max']}"
        for row in spans.sort_by([("topic", "ascending"), ("partition", "ascending")]).to_pylist()
    )
    found = one_after_another.from_iterable(
        of_stage(scope, stage, chain(scope.ledger_by(stage))) for stage in scope.plan.firsts
    )
    return judged("ranges", found, f"without gap or overlap: {reach}")


def accounts(scope: Scope) -> Verdict:
    """Every record that was read has one fate."""
    told = {name: pc.sum(scope.ledger.column(name)).as_py() or 0 for name in ("read", *FATES)}
    parts = " + ".join(f"{told[name]:,} {name}" for name in FATES)
    found = one_after_another.from_iterable(
        of_stage(scope, stage, sums(scope.ledger_by(stage))) for stage in scope.plan.firsts
    )
    return judged("accounts", found, f"{told['read']:,} read = {parts}")


def of_stage(scope: Scope, stage: Stage, found: Iterator[Difference]) -> Iterator[Difference]:
    """What was found in the books of one first stage, which it says where there are several."""
    for each in found:
        yield each if stage == scope.plan.first else replace(each, where=f"{stage.name}: {each.where}")


def witnesses(scope: Scope) -> Verdict:
    """Ledger, control store and journal say the same of every batch."""
    ledger = accounts_in(scope.ledger)
    stored = accounts_of((batch.batch_id, batch.accounts) for batch in scope.batches)
    outcomes = list(scope.outcomes())
    decided = [(outcome.batch_id, outcome.accounts) for outcome in outcomes]
    found = one_after_another(
        numbering(scope.batches),
        moments(scope.batches, (batch_record(scope.plan.name, outcome) for outcome in outcomes)),
        agreement(ledger, stored, "control store"),
        agreement(ledger, accounts_of(decided), "journal"),
    )
    fine = (
        f"ledger and control store agree on {len(scope.batches)} batches, the journal on its {len(decided)}"
    )
    return judged("witnesses", found, fine)


def apart(scope: Scope) -> Verdict:
    """Late and quarantined records are in their tables, as many as the ledger counts, with their addresses."""
    found = one_after_another.from_iterable(
        of_stage(scope, stage, _apart(scope, stage)) for stage in scope.plan.firsts
    )
    late = sum(scope.late_by(stage).num_rows for stage in scope.plan.firsts)
    fine = f"{late:,} late and {scope.quarantined.num_rows:,} quarantined rows have their addresses"
    return judged("set aside", found, fine)


def _apart(scope: Scope, stage: Stage) -> Iterator[Difference]:
    ledger = scope.ledger_by(stage)
    ours = pc.is_in(scope.quarantined.column("topic"), pc.unique(ledger.column("topic")))
    yield from set_aside(ledger, scope.late_by(stage), "late", _once(stage), several=_several(stage))
    yield from set_aside(ledger, scope.quarantined.filter(ours), "quarantined")


def _once(stage: Stage) -> tuple[str, ...] | None:
    """What names a row of a stage's late records; None where a step may make rows of one that are the same."""
    if may_multiply(stage):
        return None
    return (*ADDRESS, "window_start") if isinstance(stage.window, Sliding) else tuple(ADDRESS)


def _several(stage: Stage) -> bool:
    """Tell whether a record may be taken by one window and be late for another, or for another of its keys."""
    return isinstance(stage.window, Sliding) or may_multiply(stage)


def quarantine(scope: Scope) -> Verdict:
    """What was decided of quarantined records is what was done, and each of them stands somewhere."""
    differences: list[Difference] = []
    told: Counter[str] = Counter()
    for topic in scope.topics:
        decisions = Decisions(scope.decisions / f"{topic}.jsonl").all()
        ledger = scope.producers.get(f"quarantine-{topic}")
        records = quarantined(scope.warehouse, topic)
        delivered = {} if ledger is None else delivered_by(ledger)
        sent = 0 if ledger is None else read_state(ledger).reached
        differences += mended(topic, records, decisions, sent, partial(_reach, scope, topic))
        told.update(counts(standings(records, decisions, delivered)))
    fine = " + ".join(f"{count} {state}" for state, count in told.items())
    return judged("quarantine", differences, f"{told.total()} quarantined = {fine}")


def _reach(scope: Scope, topic: str) -> Reach:
    """The offsets of a topic's partitions that the ledger tells of."""
    return {
        partition: (pc.min(rows.column("start")).as_py(), pc.max(rows.column("end")).as_py())
        for (of, partition), rows in by_partition(scope.ledger)
        if of == topic
    }


def panes(scope: Scope) -> Verdict:
    """Tables of panes hold what each batch says that it wrote, over all stages together."""
    logs = [tables for stage in scope.plan.stages for tables in pane_logs(stage)]
    if not all(logs):
        return unproven(
            "panes", "not every stage keeps all of its panes, and a batch counts those of all stages"
        )
    found = (_panes(scope, tables) for tables in product(*logs))
    named = ", ".join(table for tables in logs for table in tables)
    return judged("panes", one_after_another.from_iterable(found), f"{named} as each batch says")


def pane_logs(stage: Stage) -> list[list[str]]:
    """For each output of a stage the tables that hold every pane of it; most stages have one output."""
    logs = [sink for sink in stage.sinks if isinstance(sink, PaneLog)]
    named = stage.window.outputs if isinstance(stage.window, Remembering) else ()
    return [
        [f"panes/{log.table}" for log in logs if log.output == output]
        for output in (None, *(each.name for each in named))
    ]


def _panes(scope: Scope, tables: Sequence[str]) -> Iterator[Difference]:
    columns = ["batch_id", "timing", "kind"]
    found = pa.concat_tables([needed(scope.warehouse / table, scope.upto, columns) for table in tables])
    begin = max(map(scope.begins_after, tables))
    batches = [batch for batch in scope.batches if batch.batch_id > begin]
    return pane_counts(batches, found, ", ".join(tables)) if batches else iter(())


CHECKS: tuple[tuple[str, Callable[[Scope], Verdict]], ...] = (
    ("files", files),
    ("ranges", ranges),
    ("accounts", accounts),
    ("witnesses", witnesses),
    ("set aside", apart),
    ("panes", panes),
    ("quarantine", quarantine),
)
