"""A source of the user's own: the records of the first rounds, from a file for each round of a topic."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.ingestion.producer import SourceBatch
from penstock.ingestion.sources import RecordSource, ReplayableSource, SourceKind, SourceOption
from penstock.ingestion.sources.source_kind import SourceContext


class RoundFiles(ReplayableSource, SourceKind):
    """Records of the files in the folder `records/<topic>`, round by round."""

    kind = "round-files"
    options = (SourceOption("until", "The last round.", int, is_required=True),)

    def __init__(self, topic: str, until: int) -> None:
        self.description = f"rounds of {topic}"
        self._topic = topic
        self._until = until

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return the rounds up to one."""
        return cls(context.contract.topic, context.options["until"])

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield a batch for each round."""
        for number in range(position or 1, self._until + 1):
            lines = Path("records", self._topic, f"{number}.jsonl").read_bytes().splitlines()
            yield SourceBatch(lines, number, position_after=number + 1)
