"""How long a stream that failed waits before it is tried again, and when it is tried no more.

Three kinds of failures. What is the same at every try is parked at once. What comes from around the stream, such as
a broker, a disk or a store that is away, is tried for ever: it ends without anybody touching the stream. Everything
else, such as records that one's own code or a check does not bear, is tried for a while and then parked.
"""

from dataclasses import dataclass

from confluent_kafka import KafkaException
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JNetworkError

from penstock.engine.errors import (
    DefinitionError,
    PlanChangedError,
    PlanFormatError,
    PoisonLimitError,
    PublishError,
    ReplayError,
    StreamEndedError,
)

FIRST_BACKOFF_MS = 1_000
MAX_BACKOFF_MS = 60_000
FAILURE_RESET_AFTER_MS = 300_000
MAX_START_ATTEMPTS = 20

PERMANENT_ERRORS = (DefinitionError, PlanChangedError, PlanFormatError, PoisonLimitError, ReplayError)
"""Errors that are the same at every try, until somebody changes something."""

TRANSIENT_ERRORS = (
    OSError,
    KafkaException,
    PublishError,
    CommitFailedError,
    Py4JNetworkError,
    StreamEndedError,
)
"""Errors of what a stream stands on: they end when that is well again."""

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
"""What Spark says of the same, in the text of an error that has no type of its own for it."""

USER_CODE_ERROR = "PythonException"
"""What Spark says where one's own code raised, whatever else stands in the text."""


@dataclass(frozen=True)
class FailureHistory:
    """The failures of one stream so far: how many in a row, when the last one was, and what is to be hoped."""

    count: int = 0
    last_failure_ms: int = 0
    is_permanent: bool = False
    is_transient: bool = False

    def add_failure(self, now_ms: int, error: BaseException | None = None) -> "FailureHistory":
        """One more; a stream that ran for long enough begins to count anew."""
        is_reset = self.count and now_ms - self.last_failure_ms > FAILURE_RESET_AFTER_MS
        is_permanent, is_transient = isinstance(error, PERMANENT_ERRORS), is_transient_error(error)
        # What comes from around the stream says nothing of the stream, so it is not counted against it.
        count = 1 if is_reset or is_transient != self.is_transient else self.count + 1
        return FailureHistory(count, now_ms, is_permanent, is_transient)

    @property
    def retry_at_ms(self) -> int:
        """The earliest moment of the next try: twice as long after each failure, up to a minute."""
        if not self.count:
            return 0
        backoff_ms: int = min(FIRST_BACKOFF_MS << min(self.count - 1, 16), MAX_BACKOFF_MS)
        return self.last_failure_ms + backoff_ms

    def is_exhausted(self, max_attempts: int) -> bool:
        """Whether the stream is to be parked."""
        return self.is_permanent or (not self.is_transient and self.count >= max_attempts)


def is_transient_error(error: BaseException | None) -> bool:
    """Whether a failure comes from what a stream stands on, so that it may end by itself."""
    if isinstance(error, TRANSIENT_ERRORS):
        return True
    error_text = f"{type(error).__name__}: {error}"
    return USER_CODE_ERROR not in error_text and any(name in error_text for name in TRANSIENT_JAVA_ERRORS)
