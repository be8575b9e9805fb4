"""How long-running commands write their log: for a terminal, or as JSON for a collector."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

_STANDARD = frozenset(vars(logging.makeLogRecord({})))


class JsonFormatter(logging.Formatter):
    """One object a line; what a call gave as `extra` (stream, batch) stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def write_logs(form: Literal["text", "json"]) -> None:
    """Have everything from INFO on written to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Spark's bridge to Java tells of every socket it opens.
    logging.getLogger("py4j").setLevel(logging.WARNING)
