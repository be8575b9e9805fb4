"""How long a stream that failed waits before it is tried again, and when it is tried no more.

Three kinds of failures. What is the same at every try is parked at once. What comes from around the stream, such as
a broker, a disk or a store that is away, is tried for ever: it ends without anybody touching the stream. Everything
else, such as records that one's own code or a check does not bear, is tried for a while and then parked.
"""

from dataclasses import dataclass

from confluent_kafka import KafkaException
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JNetworkError

from penstock.pipelines.errors import (
    DefinitionError,
    PlanChangedError,
    PlanFormatError,
    PoisonError,
    PublishError,
    ReplayError,
    StreamEndedError,
)

FIRST_MS = 1_000
LONGEST_MS = 60_000
FORGIVEN_AFTER_MS = 300_000
PARK_AFTER = 20

NO_USE_TO_TRY = (DefinitionError, PlanChangedError, PlanFormatError, PoisonError, ReplayError)
"""Errors that are the same at every try, until somebody changes something."""

FROM_AROUND = (OSError, KafkaException, PublishError, CommitFailedError, Py4JNetworkError, StreamEndedError)
"""Errors of what a stream stands on: they end when that is well again."""

FROM_AROUND_IN_JAVA = (
    "org.apache.kafka.common.errors.",
    "org.apache.kafka.common.KafkaException",
    "java.io.IOException",
    "java.net.ConnectException",
    "java.net.NoRouteToHostException",
    "java.net.SocketException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "java.util.concurrent.TimeoutException",
)
"""What Spark says of the same, in the text of an error that has no type of its own for it."""

OWN_CODE = "PythonException"
"""What Spark says where one's own code raised, whatever else stands in the text."""


@dataclass(frozen=True)
class Failures:
    """The failures of one stream so far: how many in a row, when the last one was, and what is to be hoped."""

    count: int = 0
    at_ms: int = 0
    hopeless: bool = False
    from_around: bool = False

    def again(self, now_ms: int, problem: BaseException | None = None) -> "Failures":
        """One more; a stream that ran for long enough begins to count anew."""
        forgiven = self.count and now_ms - self.at_ms > FORGIVEN_AFTER_MS
        hopeless, around = isinstance(problem, NO_USE_TO_TRY), is_from_around(problem)
        # What comes from around the stream says nothing of the stream, so it is not counted against it.
        count = 1 if forgiven or around != self.from_around else self.count + 1
        return Failures(count, now_ms, hopeless, around)

    @property
    def retry_at_ms(self) -> int:
        """The earliest moment of the next try: twice as long after each failure, up to a minute."""
        if not self.count:
            return 0
        wait: int = min(FIRST_MS << min(self.count - 1, 16), LONGEST_MS)
        return self.at_ms + wait

    def is_enough(self, park_after: int) -> bool:
        """Whether the stream is to be parked."""
        return self.hopeless or (not self.from_around and self.count >= park_after)


def is_from_around(problem: BaseException | None) -> bool:
    """Whether a failure comes from what a stream stands on, so that it may end by itself."""
    if isinstance(problem, FROM_AROUND):
        return True
    said = f"{type(problem).__name__}: {problem}"
    return OWN_CODE not in said and any(name in said for name in FROM_AROUND_IN_JAVA)
