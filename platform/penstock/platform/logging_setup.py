"""How long-running commands write their log: for a terminal, or as JSON for a collector."""

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Literal

from penstock.core.log_context import current_log_context

_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({})))


class JsonLogFormatter(logging.Formatter):
    """One object a line; what a call gave as `extra` (stream, batch) stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLogFormatter(logging.Formatter):
    """A line for a terminal: when, how grave, of which stream and batch, what."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(work)s%(message)s")
        self.converter = time.gmtime  # UTC, as Spark writes to the same file

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        stream, batch = getattr(record, "stream", None), getattr(record, "batch", None)
        record.work = f"[{stream}{'' if batch is None else f' {batch}'}] " if stream else f"{record.name}: "
        return super().format(record)


def add_log_context(record: logging.LogRecord) -> bool:
    """Say of each line of which stream and batch it is, where its thread works on one."""
    if (context := current_log_context()) and not hasattr(record, "stream"):
        record.stream = context.stream
        if context.batch is not None:
            record.batch = context.batch
    return True


def configure_logging(log_format: Literal["text", "json"]) -> None:
    """Have everything from INFO on written to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLogFormatter() if log_format == "json" else TextLogFormatter())
    handler.addFilter(add_log_context)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Spark's bridge to Java tells of every socket it opens.
    logging.getLogger("py4j").setLevel(logging.WARNING)
