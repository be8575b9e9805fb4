"""The base class of sinks that are Delta tables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.engine.plan.sinks import ReplayRule, TableSink

if TYPE_CHECKING:
    from penstock.engine.storage import StoragePath


@dataclass(frozen=True)
class DeltaSink(TableSink):
    """A Delta table. The modules of tables are imported when it is opened: a definition does not need them."""

    is_delta_table: ClassVar[bool] = True
    replay_rule: ClassVar[ReplayRule] = ReplayRule.REPLACE

    def replace_content(
        self, path: "StoragePath", replayed: "StoragePath", application: str, batch_id: int, clock: int
    ) -> None:
        """Replace the files of the table in one commit."""
        from penstock.engine.tables.table_takeover import take_over_table

        take_over_table(path, replayed, application, batch_id, clock)
