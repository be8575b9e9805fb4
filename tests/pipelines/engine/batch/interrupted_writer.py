"""A Parquet writer that is interrupted in the middle of a file."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class InterruptedWriter:
    """Writes Parquet like the library, and calls `meanwhile` in the middle of the n-th file."""

    def __init__(self, nth: int, meanwhile: Callable[[], None]) -> None:
        self._left = nth
        self._meanwhile = meanwhile

    def write_table(self, rows: pa.Table, path: Path, **options: Any) -> None:
        whole = BytesIO()
        pq.write_table(rows, whole, **options)
        content = whole.getvalue()
        self._left -= 1
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            if self._left == 0:
                self._meanwhile()
            file.write(content[len(content) // 2 :])

    def __getattr__(self, name: str) -> Any:
        return getattr(pq, name)
