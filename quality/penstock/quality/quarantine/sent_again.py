"""Records that were sent again: a stream that comes to one of them later takes the other of the two."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from penstock.pipelines.batch.poison import Poisoned, Spans
from penstock.quality.quarantine.decisions import Decisions

Places = Mapping[int, Sequence[int]]
"""The offsets of each partition whose records were sent again, in the order of decisions."""


class SentAgain:
    """Knows it from the decisions in a folder, as they are when it is asked; a file is read when it has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, spans: Spans) -> Sequence[Poisoned]:
        """Return the records of these ranges that were sent again."""
        return [
            Poisoned(span.topic, span.partition, offset, "a record that was decided on", "sent_again")
            for span in spans
            for offset in self._of(span.topic).get(span.partition, ())
            if span.start <= offset < span.end
        ]

    def _of(self, topic: str) -> Places:
        path = self._folder / f"{topic}.jsonl"
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return {}
        return _read(path, size)


@lru_cache(maxsize=64)
def _read(path: Path, _size: int) -> Places:
    """What a file says; it only grows, so its size tells whether it is known."""
    found: dict[int, list[int]] = defaultdict(list)
    for decision in Decisions(path).all():
        if decision.fate == "replayed":
            found[decision.partition].append(decision.offset)
    return found
