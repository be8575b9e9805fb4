"""A plan at work, slowly and obviously: the six steps of a batch, one after the other.

This is the specification that the engine's answers are compared with. It keeps every element of every open
window, computes each pane from nothing, and promises no speed at all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from penstock.pipelines.errors import StepsNotGivenError
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling, by_processing_time
from penstock.pipelines.reference.answers import Account, Outcome, Pane, Quarantined, Replaced
from penstock.pipelines.reference.changes import Steps, elements_of, unchanged
from penstock.pipelines.reference.firing import Moment
from penstock.pipelines.reference.grouping import Grouping
from penstock.pipelines.reference.intake import Intake
from penstock.pipelines.reference.numbers import canonical
from penstock.pipelines.reference.ordering import Ordering
from penstock.pipelines.reference.records import BEGINNING, END, Address, Batch, Element, Instant, Record
from penstock.pipelines.reference.remembering import Remembered
from penstock.pipelines.reference.watermark import SourceWatermark


class Evaluator:
    """One pipeline. `steps` stands for the steps of its first stage: one record in, any number out.

    Those of later stages are given in `later`, by the stage's name.
    """

    def __init__(
        self, plan: Plan, steps: Steps | None = None, later: Mapping[str, Steps] = MappingProxyType({})
    ) -> None:
        given = {**later, **({} if steps is None else {plan.first.name: steps})}
        if any(stage.steps and stage.name not in given for stage in plan.stages):
            raise StepsNotGivenError(plan.name)
        self.plan = plan
        self.steps = {stage.name: given.get(stage.name, unchanged) for stage in plan.stages}
        self.intakes = [Intake(source, SourceWatermark(source.watermark)) for source in plan.sources]
        self.windows = {stage.name: windows_for(plan, stage) for stage in plan.stages}
        self.watermark: Instant = BEGINNING
        self.clock: Instant = BEGINNING

    def run(self, batch: Batch) -> Outcome:
        """Take one batch."""
        accounts = {place: Account() for place in batch.partitions}
        accepted, quarantined = self.read(batch, accounts)
        elements = {record.address: self.elements(record) for record in accepted}
        before = self.watermark
        moment = self.moment(batch, before, before)
        first = self.windows[self.plan.first.name]
        taken = first.fold([element for some in elements.values() for element in some], moment)
        settle(accounts, elements, taken)
        self.advance(batch)
        moment = self.moment(batch, before, self.watermark)
        rows = list(first.emit(moment))
        panes = {self.plan.first.name: tuple(row for row in rows if isinstance(row, Pane))}
        for stage in self.plan.stages:
            if self.plan.feeding(stage):
                panes[stage.name] = self.follow(stage, panes, self.later_moment(batch, before))
        self.clock = batch.clock
        return Outcome(
            batch=batch.id,
            clock=batch.clock,
            watermark=self.watermark,
            panes=panes[self.plan.first.name],
            replaced=tuple(row for row in rows if isinstance(row, Replaced)),
            late=tuple(first.missed()),
            quarantined=tuple(quarantined),
            accounts=accounts,
            later={name: rows for name, rows in panes.items() if name != self.plan.first.name},
        )

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
        return tuple(row for row in windows.emit(moment[1]) if isinstance(row, Pane))

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

    def elements(self, record: Record) -> list[Element]:
        """Return what the steps make of a record."""
        source = self.plan.source(record.source)
        stage = self.plan.first
        made = self.steps[stage.name](record.fields)
        return [
            Element(
                key=canonical(tuple(fields.get(name) for name in stage.key)),
                time=fields.get(source.event_time, record.fields[source.event_time]),
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

    def moment(self, batch: Batch, before: Instant, watermark: Instant) -> Moment:
        """Return when windows are judged: windows of processing time go by the clock in place of the watermark."""
        moment = Moment(batch.id, batch.clock, before, watermark, watermark)
        if not by_processing_time(self.plan.first.window):
            return moment
        return replace(moment, before=self.clock, watermark=END if watermark == END else batch.clock)


def windows_for(plan: Plan, stage: Stage) -> Grouping | Ordering | Remembered:
    """Return the windows of a stage, none of which is open yet."""
    match stage.window:
        case Tumbling() | SlidingOrder() as window:
            return Ordering(stage, window)
        case Remembering() as window:
            read = (column for source in plan.sources for column in source.columns)
            return Remembered(stage, window, tuple(read))
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
