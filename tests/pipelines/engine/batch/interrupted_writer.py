"""A Parquet writer that is interrupted in the middle of a file."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


class InterruptedWriter:
    """Writes Parquet like the library, and calls `run_meanwhile` in the middle of the n-th file."""

    def __init__(self, nth: int, run_meanwhile: Callable[[], None]) -> None:
        self._files_left = nth
        self._run_meanwhile = run_meanwhile

    def write_table(self, rows: pa.Table, path: Path, **options: Any) -> None:
        buffer = BytesIO()
        pq.write_table(rows, buffer, **options)
        content = buffer.getvalue()
        self._files_left -= 1
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
            file.flush()
            if self._files_left == 0:
                self._run_meanwhile()
            file.write(content[len(content) // 2 :])

    def __getattr__(self, name: str) -> Any:
        return getattr(pq, name)
