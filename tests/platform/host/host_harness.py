"""A host under test: a real control store, a clock that the test advances, and fake streams."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.core.clock import now_ms
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.host.control import HostControl
from penstock.engine.host.stream_host import StreamHost
from penstock.engine.host_settings import HostSettings
from penstock.engine.operators.watermark import Watermark
from penstock.platform.control import ControlStore
from penstock.platform.control.reports import read_batch_history
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, StateRequest, request_state

STREAM = "s"
HARNESS_PLACE = "tests/platform/host/host_harness.py:LINE"
"""Where failures are raised. Their reasons name it, as they do a file of yours: it is none of the platform's."""
CLOCK_START_MS = now_ms() + 86_400_000
"""The start of the test clock. It stands still until the test advances it, so that a slow machine expires no lease
and ends no backoff. By the wall clock, leases are still alive."""


@dataclass
class FakeStream:
    """A stream that records its calls; each start raises the next of the given failures."""

    fence: WriteFence
    calls: list[str]
    failures: list[Exception]
    running_failure: Exception | None = None
    retained: list[BatchOutcome] = field(default_factory=list)
    report_outcome: Callable[[BatchOutcome], None] = lambda _: None
    stop_failures: list[Exception] = field(default_factory=list)
    on_drain: Callable[[], None] = lambda: None

    def read_outcomes_after(self, after: int) -> list[BatchOutcome]:
        return [outcome for outcome in self.retained if outcome.batch_id > after]

    def start(self, *, reading: bool = True) -> None:
        self.calls.append("start" if reading else "start paused")
        if self.failures:
            raise self.failures.pop(0)

    def failure(self) -> BaseException | None:
        return self.running_failure

    def describe_current_batch(self) -> str:
        return "batch 7, offsets t/0 10 to 20"

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def drain(self) -> None:
        self.calls.append("drain")
        self.on_drain()
        if self.stop_failures:
            raise self.stop_failures.pop()

    def stop(self) -> None:
        self.calls.append("stop")


@dataclass
class HostHarness:
    """A host, its store, and a clock for leases and backoffs."""

    store: ControlStore
    calls: list[str] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    definition_version: str = "version 1"
    streams: list[FakeStream] = field(default_factory=list)
    retained: list[BatchOutcome] = field(default_factory=list)
    before_create: Callable[[], None] = lambda: None
    ahead_ms: int = 0
    name: str = "host"
    step_wait_s: float = 30.0
    control: HostControl | None = None
    """The host's control store, if it is not `store` itself."""

    def __post_init__(self) -> None:
        self.host = StreamHost(
            self.name,
            self.control or self.store,
            self.create_stream,
            self.clock,
            is_spark_alive=lambda: True,
            poll_interval_s=0.01,
            step_wait_s=self.step_wait_s,
            settings=HostSettings(max_retries=3),
            read_definition_version=lambda _: self.definition_version,
        )

    def clock(self) -> int:
        return CLOCK_START_MS + self.ahead_ms

    def create_stream(
        self, name: str, fence: WriteFence, report_outcome: Callable[[BatchOutcome], None]
    ) -> FakeStream:
        self.before_create()
        self.streams.append(
            FakeStream(
                fence, self.calls, self.failures, retained=self.retained, report_outcome=report_outcome
            )
        )
        return self.streams[-1]

    def request(self, command: str) -> StateRequest:
        request = request_state(self.store, STREAM, STREAM_COMMANDS[command], (STREAM,))
        self.host.reconcile()
        return request

    def reconcile_after_backoff(self) -> None:
        self.ahead_ms += 70_000
        self.host.reconcile()

    def after_reconcile(self, condition: Callable[[], bool]) -> Callable[[], bool]:
        """Return a condition that reconciles before each check."""
        return lambda: (self.host.reconcile(), condition())[1]

    def state(self) -> str:
        state_name = self.read_state(STREAM)
        assert state_name is not None
        return state_name

    def state_since(self) -> int:
        health = self.store.read_health(STREAM)
        assert health is not None
        return health.at_ms

    def read_state(self, stream: str) -> str | None:
        health = self.store.read_health(stream)
        return None if health is None else health.state


def hide_line(reason: str) -> str:
    """Return a reason of a failure with LINE for the line of this file that raised it."""
    return re.sub(r"(host_harness\.py):\d+", r"\1:LINE", reason)


def build_outcome(number: int) -> BatchOutcome:
    return BatchOutcome(number, "data", 0, 1, None, Watermark(), {}, {}, {})


def list_reported_batches(store: ControlStore) -> list[int]:
    return [record.batch_id for record in read_batch_history(store, STREAM)]
