"""When a failed stream is started again, and when it fails for good.

- A permanent error, which is the same at every try, fails the stream immediately.
- A transient error, such as a broker, a disk or a store that is away, is retried without end.
- Any other error, such as a record that user code cannot process, is retried `max_retries` times.
"""

from dataclasses import dataclass

from confluent_kafka import KafkaException
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JNetworkError

from penstock.engine.errors import (
    DamagedEntryError,
    DefinitionError,
    OtherTopicError,
    PlanChangedError,
    PlanFormatError,
    PoisonLimitError,
    PublishError,
    RecordsExpiredError,
    ReplayError,
    StreamEndedError,
    TableAheadError,
    TableOwnedError,
    TopicUnavailableError,
)

FIRST_BACKOFF_MS = 1_000
MAX_BACKOFF_MS = 60_000
FAILURE_RESET_AFTER_MS = 300_000

PERMANENT_ERRORS = (
    DamagedEntryError,
    DefinitionError,
    OtherTopicError,
    PlanChangedError,
    PlanFormatError,
    PoisonLimitError,
    RecordsExpiredError,
    ReplayError,
    TableAheadError,
    TableOwnedError,
)
"""Errors that every retry repeats, until a user changes something."""

TRANSIENT_ERRORS = (
    OSError,
    KafkaException,
    PublishError,
    CommitFailedError,
    Py4JNetworkError,
    StreamEndedError,
    TopicUnavailableError,
)
"""Errors of a dependency: they end when the dependency recovers."""

TRANSIENT_JAVA_ERRORS = (
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
"""How Spark names transient errors in the text of its own exceptions."""

USER_CODE_ERROR = "PythonException"
"""How Spark names an exception of user code, whatever else the text contains."""


@dataclass(frozen=True)
class FailureHistory:
    """The failures of one stream: how many in a row, when the last one was, and of which kind."""

    count: int = 0
    last_failure_ms: int = 0
    is_permanent: bool = False
    is_transient: bool = False

    def add_failure(self, now_ms: int, error: BaseException | None = None) -> "FailureHistory":
        """Count one more failure; the count restarts after a long healthy run."""
        is_reset = self.count and now_ms - self.last_failure_ms > FAILURE_RESET_AFTER_MS
        is_permanent, is_transient = isinstance(error, PERMANENT_ERRORS), is_transient_error(error)
        # A transient error says nothing about the stream, so it does not use up the stream's retries.
        count = 1 if is_reset or is_transient != self.is_transient else self.count + 1
        return FailureHistory(count, now_ms, is_permanent, is_transient)

    @property
    def retry_at_ms(self) -> int:
        """The earliest time of the next try: the backoff doubles after each failure, up to a minute."""
        if not self.count:
            return 0
        backoff_ms: int = min(FIRST_BACKOFF_MS << min(self.count - 1, 16), MAX_BACKOFF_MS)
        return self.last_failure_ms + backoff_ms

    def is_exhausted(self, max_retries: int) -> bool:
        """Whether the stream fails for good."""
        return self.is_permanent or (not self.is_transient and self.count >= max_retries)


def is_transient_error(error: BaseException | None) -> bool:
    """Whether the error comes from a dependency, so that it may end by itself."""
    if isinstance(error, TRANSIENT_ERRORS):
        return True
    error_text = f"{type(error).__name__}: {error}"
    return USER_CODE_ERROR not in error_text and any(name in error_text for name in TRANSIENT_JAVA_ERRORS)
