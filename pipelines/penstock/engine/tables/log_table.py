"""Tables that only grow: a file for each batch that has rows."""

import pyarrow as pa

from penstock.engine.tables.batch_table import BatchTable
from penstock.engine.tables.table_change import TableChange


class LogTable(BatchTable):
    """A table to which each batch's rows are appended."""

    def write(self, rows: pa.Table, batch_id: int, clock: int) -> TableChange:
        """Write a batch's rows into a file that the table does not name yet.

        Its name says whose rows they are: streams of one topic share a quarantine.
        """
        if not rows.num_rows:
            return TableChange()
        return TableChange(
            [self.write_file(rows, f"{self.application}-{batch_id:012d}", clock)], (), rows.num_rows
        )
