"""What a batch comes to before anything of it is written: its records, read and folded."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.batch.folding import BatchFolded, Partials, release
from penstock.pipelines.batch.inputs import Reached, topic_of
from penstock.pipelines.batch.intent import Intent
from penstock.pipelines.batch.late import late_rows
from penstock.pipelines.batch.lookups import seen_by
from penstock.pipelines.batch.reading import CHECKED, QUARANTINED, Checked, Reading, accounts
from penstock.pipelines.batch.tables import QUARANTINED as QUARANTINED_ROWS
from penstock.pipelines.batch.tables import Written
from penstock.pipelines.fold.graph import ReadyGraph, moment_of
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.published import published
from penstock.pipelines.host.control import PartitionAccount
from penstock.pipelines.repeats.ids import Sifted

Accounts = tuple[PartitionAccount, ...]


@dataclass(frozen=True)
class Computed:
    """A batch that was read and folded. Nothing of it is seen from outside, so it may be dropped."""

    readings: Mapping[str, Reading]
    """The records as each first stage reads them."""
    sifted: Sifted
    partials: Mapping[str, Partials]
    reached: Reached
    moment: Moment
    done: BatchFolded

    def release(self) -> None:
        """Let go of what was kept for it elsewhere."""
        release(self.partials)

    def written(self, graph: ReadyGraph, intent: Intent) -> Written:
        """Everything that it has to say; single records are looked for only where there are any."""
        reading = next(iter(self.readings.values()))
        accounted, beside = self._accounted(graph, intent)
        return Written(
            panes={name: each.panes for name, each in self.done.stages.items()},
            late=self._late(graph),
            quarantined=reading.invalid() if self._quarantined else QUARANTINED_ROWS.empty_table(),
            accounts=accounted,
            beside=beside,
            lookups=seen_by(intent),
            published={
                stage.plan.name: published(stage, self.done.stages[stage.plan.name], self.moment)
                for stage in graph.stages
                if stage.plan.topics
            },
            broken=reading.broken() if isinstance(reading, Checked) else CHECKED.empty_table(),
        )

    @property
    def _quarantined(self) -> bool:
        tables = [told.partials.column("_set_aside") for told in self.done.told.values()]
        return any(pc.any(pc.equal(column, QUARANTINED)).as_py() for column in tables)

    def _late(self, graph: ReadyGraph) -> dict[str, pa.Table]:
        """The records that each first stage refused."""
        found = {}
        for stage in graph.firsts:
            name, at = stage.plan.name, moment_of(stage, self.moment)
            found[name] = late_rows(stage, self.done.stages[name].missed, self.readings[name], at)
        return found

    def _accounted(self, graph: ReadyGraph, intent: Intent) -> tuple[Accounts, dict[str, Accounts]]:
        """What became of the records of each partition in the first stage that reads it, and in those beside it."""
        once: dict[str, PartitionAccount] = {}
        beside: dict[str, Accounts] = {}
        for stage in graph.firsts:
            topics = {topic_of(source) for source in graph.plan.read_by(stage.plan)}
            spans = [span for span in intent.ranges if span.topic in topics]
            told = self.done.told[stage.plan.name]
            found = dict(
                zip((span.name for span in spans), accounts(spans, told.partials, told.late), strict=True)
            )
            beside[stage.plan.name] = tuple(account for name, account in found.items() if name in once)
            once = found | once
        ordered = tuple(once[span.name] for span in intent.ranges)
        return ordered, {name: rest for name, rest in beside.items() if rest}
