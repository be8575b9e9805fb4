"""How many records a topic holds beyond what a batch has read."""

from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from penstock.pipelines.batch.intent import Range

ASK_EVERY_MS = 1_000
PATIENCE_S = 2.0


class Lag:
    """Asks the broker for the ends of partitions, at most once a second; between, the last answer stands."""

    def __init__(self, options: Mapping[str, str], clock: Callable[[], int]) -> None:
        self._admin = AdminClient(dict(options))
        self._clock = clock
        self._asked_at: int | None = None
        self._ends: dict[tuple[str, int], int] = {}

    def behind(self, ranges: Sequence[Range]) -> int:
        """Records beyond the ends of these ranges; what the broker does not tell counts as none."""
        now = self._clock()
        if ranges and (self._asked_at is None or now - self._asked_at >= ASK_EVERY_MS):
            self._asked_at = now
            self._ask(ranges)
        return sum(max(self._ends.get((r.topic, r.partition), r.end) - r.end, 0) for r in ranges)

    def unread(self, ranges: Sequence[Range]) -> list[str]:
        """The partitions that go on beyond these ranges, as of now, or of which the broker does not tell."""
        self._asked_at = self._clock()
        self._ask(ranges)
        return [r.name for r in ranges if self._ends.get((r.topic, r.partition), r.end + 1) > r.end]

    def _ask(self, ranges: Sequence[Range]) -> None:
        latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the client's own has no types
        wanted = {TopicPartition(r.topic, r.partition): latest for r in ranges}
        for place, answer in self._admin.list_offsets(wanted, request_timeout=PATIENCE_S).items():
            try:
                self._ends[place.topic, place.partition] = answer.result().offset
            except KafkaException:
                self._ends.pop((place.topic, place.partition), None)
