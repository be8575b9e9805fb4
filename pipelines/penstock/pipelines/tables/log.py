"""Tables that only grow: a file for each batch that has rows."""

import pyarrow as pa

from penstock.pipelines.tables.change import Change
from penstock.pipelines.tables.table import BatchTable


class LogTable(BatchTable):
    """A table to which each batch's rows are appended."""

    def write(self, rows: pa.Table, batch_id: int, clock: int) -> Change:
        """Write a batch's rows into a file that the table does not name yet.

        Its name says whose rows they are: streams of one topic share a quarantine.
        """
        if not rows.num_rows:
            return Change()
        return Change(
            [self.write_file(rows, f"{self.application}-{batch_id:012d}", clock)], (), rows.num_rows
        )
