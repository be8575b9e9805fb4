"""An append-only table: one file for each batch with rows."""

import pyarrow as pa

from penstock.engine.tables.batch_table import BatchTable
from penstock.engine.tables.table_change import TableChange


class LogTable(BatchTable):
    """A table to which each batch's rows are appended."""

    def write(self, rows: pa.Table, batch_id: int, clock: int) -> TableChange:
        """Write a batch's rows into a file that no table version names yet.

        The file name starts with the stream: streams that read the same topic share a quarantine.
        """
        if not rows.num_rows:
            return TableChange()
        return TableChange(
            [self.write_file(rows, f"{self.application}-{batch_id:012d}", clock)], (), rows.num_rows
        )
