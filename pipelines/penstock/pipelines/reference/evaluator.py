"""A plan at work, slowly and obviously: the six steps of a batch, one after the other.

This is the specification that the engine's answers are compared with. It keeps every element of every open
window, computes each pane from nothing, and promises no speed at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from penstock.pipelines.errors import LateChangeError, StepsNotGivenError
from penstock.pipelines.plan.pairing import AsOf, Between
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling, by_processing_time
from penstock.pipelines.reference.answers import Account, Beside, Outcome, Pane, Quarantined, Replaced
from penstock.pipelines.reference.changes import elements_of
from penstock.pipelines.reference.firing import Moment
from penstock.pipelines.reference.grouping import Grouping
from penstock.pipelines.reference.in_time import RememberedInTime
from penstock.pipelines.reference.intake import Intake
from penstock.pipelines.reference.joining import with_rows
from penstock.pipelines.reference.numbers import canonical
from penstock.pipelines.reference.ordering import Ordering
from penstock.pipelines.reference.pairing import Paired
from penstock.pipelines.reference.records import BEGINNING, END, Address, Batch, Element, Instant, Record
from penstock.pipelines.reference.relaying import Relaying
from penstock.pipelines.reference.remembering import Remembered
from penstock.pipelines.reference.steps import Steps, are_known, done
from penstock.pipelines.reference.watermark import SourceWatermark


class Evaluator:
    """One pipeline. `steps` stands for the steps of its first stage: one record in, any number out.

    Those of other stages are given in `later`, by the stage's name. Steps that are data need not be given.
    """

    def __init__(
        self, plan: Plan, steps: Steps | None = None, later: Mapping[str, Steps] = MappingProxyType({})
    ) -> None:
        given = {**later, **({} if steps is None else {plan.first.name: steps})}
        if any(not are_known(stage.steps) and stage.name not in given for stage in plan.stages):
            raise StepsNotGivenError(plan.name)
        self.plan = plan
        self.steps = {stage.name: given.get(stage.name, partial(done, stage.steps)) for stage in plan.stages}
        self.intakes = [Intake(source, SourceWatermark(source.watermark)) for source in plan.sources]
        self.windows = {stage.name: windows_for(plan, stage) for stage in plan.stages}
        self.watermark: Instant = BEGINNING
        self.clock: Instant = BEGINNING

    def run(self, batch: Batch) -> Outcome:
        """Take one batch."""
        accounts = {place: Account() for place in batch.partitions}
        accepted, quarantined = self.read(batch, accounts)
        before = self.watermark
        fates = {stage.name: self.fold_first(stage, accepted, batch, accounts) for stage in self.plan.firsts}
        self.advance(batch)
        rows = {stage.name: self.shown(stage, batch, before) for stage in self.plan.firsts}
        panes = {name: tuple(row for row in found if isinstance(row, Pane)) for name, found in rows.items()}
        for stage in self.plan.stages:
            if self.plan.feeding(stage):
                panes[stage.name] = self.follow(stage, panes, self.later_moment(batch, before))
        self.clock = batch.clock
        first = self.plan.first.name
        late = {stage.name: tuple(self.windows[stage.name].missed()) for stage in self.plan.firsts}
        return Outcome(
            batch=batch.id,
            clock=batch.clock,
            watermark=self.watermark,
            panes=panes[first],
            replaced=tuple(row for row in rows[first] if isinstance(row, Replaced)),
            late=late[first],
            quarantined=tuple(quarantined),
            accounts=self.counted_once(fates),
            later={name: found for name, found in panes.items() if name != first},
            beside={name: Beside(late[name], fates[name]) for name in fates if name != first},
        )

    def fold_first(
        self,
        stage: Stage,
        accepted: list[Record],
        batch: Batch,
        read: Mapping[tuple[str, int], Account],
    ) -> dict[tuple[str, int], Account]:
        """Let a stage take the records of its sources; return what became of them in it."""
        elements = {
            record.address: self.elements(stage, record)
            for record in accepted
            if record.source in stage.inputs
        }
        moment = self.moment(stage, batch, self.watermark, self.watermark)
        came = [element for some in elements.values() for element in some]
        taken = self.windows[stage.name].fold(came, moment)
        accounts = {place: replace(account) for place, account in read.items() if place[0] in stage.inputs}
        settle(accounts, elements, taken)
        return accounts

    def counted_once(
        self, fates: Mapping[str, Mapping[tuple[str, int], Account]]
    ) -> dict[tuple[str, int], Account]:
        """Return the account of each partition in the first stage that reads it."""
        once: dict[tuple[str, int], Account] = {}
        for accounts in fates.values():
            once = {**accounts, **once}
        return once

    def shown(self, stage: Stage, batch: Batch, before: Instant) -> list[Pane | Replaced]:
        """Return what a stage that reads records has to say."""
        moment = self.moment(stage, batch, before, self.watermark)
        return list(with_rows(stage, self.windows[stage.name].emit(moment)))

    def follow(
        self, stage: Stage, panes: Mapping[str, tuple[Pane, ...]], moment: tuple[Moment, Moment]
    ) -> tuple[Pane, ...]:
        """Let a stage take the panes of those that it reads, in the batch in which they were shown."""
        came = [
            element
            for feeding in self.plan.feeding(stage)
            for element in elements_of(stage, feeding, panes[feeding.name], self.steps[stage.name])
        ]
        windows = self.windows[stage.name]
        windows.fold(came, moment[0])
        late = [row for row in windows.missed() if row.reason != "no_window"]
        if late:
            raise LateChangeError(stage.name, len(late), moment[0].batch)
        shown = with_rows(stage, windows.emit(moment[1]))
        return tuple(row for row in shown if isinstance(row, Pane))

    def later_moment(self, batch: Batch, before: Instant) -> tuple[Moment, Moment]:
        """Return when a later stage folds, and when it judges."""
        return (
            Moment(batch.id, batch.clock, before, before, before),
            Moment(batch.id, batch.clock, before, self.watermark, self.watermark),
        )

    def read(
        self, batch: Batch, accounts: dict[tuple[str, int], Account]
    ) -> tuple[list[Record], list[Quarantined]]:
        """Step 1: quarantine, and set repeats aside."""
        read = [intake.accept(batch, accounts) for intake in self.intakes]
        accepted = [record for records, _ in read for record in records]
        return accepted, [row for _, rows in read for row in rows]

    def elements(self, stage: Stage, record: Record) -> list[Element]:
        """Return what the steps of a stage make of a record."""
        source = self.plan.source(record.source)
        own = done(stage.steps_of(record.source), record.fields)
        made = [row for fields in own for row in self.steps[stage.name](fields)]
        return [
            Element(
                key=canonical(tuple(fields.get(name) for name in stage.key)),
                time=record.fields[source.event_time],
                address=record.address,
                fields=fields,
            )
            for fields in made
        ]

    def advance(self, batch: Batch) -> None:
        """Step 4: move the watermark, never back."""
        found = [intake.watermark.advance(batch.clock) for intake in self.intakes]
        lowest = min(found) if batch.watermark is None else batch.watermark
        self.watermark = END if batch.ends else max(self.watermark, lowest)
        for intake in self.intakes:
            intake.forget(self.watermark)

    def moment(self, stage: Stage, batch: Batch, before: Instant, watermark: Instant) -> Moment:
        """Return when windows are judged: windows of processing time go by the clock in place of the watermark."""
        newest = max((intake.watermark.newest for intake in self.intakes), default=BEGINNING)
        moment = Moment(batch.id, batch.clock, before, watermark, watermark, newest)
        if not by_processing_time(stage.window):
            return moment
        return replace(moment, before=self.clock, watermark=END if watermark == END else batch.clock)


def windows_for(plan: Plan, stage: Stage) -> Grouping | Ordering | Remembered | Relaying | Paired:
    """Return the windows of a stage, none of which is open yet."""
    match stage.window:
        case Tumbling() | SlidingOrder() as window:
            return Ordering(stage, window)
        case Between() | AsOf() as window:
            return Paired(stage, window)
        case Remembering() as window:
            read = (column for source in plan.sources for column in source.columns)
            kind = RememberedInTime if window.by_time else Remembered
            return kind(stage, window, tuple(read))
        case Relayed() as window:
            return Relaying(window)
        case _:
            return Grouping(stage)


def settle(
    accounts: dict[tuple[str, int], Account], elements: Mapping[Address, list[Element]], taken: set[Address]
) -> None:
    """Write down what became of each accepted record."""
    for address, made in elements.items():
        source, partition, _ = address
        account = accounts[source, partition]
        if not made:
            account.filtered += 1
        elif address in taken:
            account.folded += 1
        else:
            account.late += 1


def evaluate(plan: Plan, batches: Iterable[Batch], steps: Steps | None = None) -> list[Outcome]:
    """Run a plan over batches, from nothing."""
    evaluator = Evaluator(plan, steps)
    return [evaluator.run(batch) for batch in batches]


def bounded(plan: Plan, records: Iterable[Record], clock: int, steps: Steps | None = None) -> Outcome:
    """Run a plan over stored records, as one batch that ends with the watermark at infinity."""
    return Evaluator(plan, steps).run(Batch(0, clock, tuple(records), ends=True))
