"""What every page of the console uses."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import Request

from penstock.platform.console.history_runs import HistoryRuns
from penstock.platform.console.partition_lag import EndOffsetReader
from penstock.platform.console.quarantine_reading import QuarantineReader
from penstock.platform.console.rendering import TemplateRenderer
from penstock.platform.console.stack_reader import StackReader
from penstock.platform.console.stream_ends import StreamEndsReader
from penstock.platform.console.topic_reading import RecentRecords
from penstock.platform.control import ControlStore
from penstock.platform.settings import Settings


@dataclass(frozen=True)
class ConsoleContext:
    """The settings, the open control store, the clock, and what renders pages. `stopping` ends live updates."""

    settings: Settings
    store: ControlStore
    clock: Callable[[], int]
    stack: StackReader
    renderer: TemplateRenderer
    records: RecentRecords
    ends: StreamEndsReader
    quarantine: QuarantineReader
    end_offsets: EndOffsetReader
    history: HistoryRuns
    stopping: threading.Event = field(default_factory=threading.Event)


def context_of(request: Request) -> ConsoleContext:
    """Return the context of the console that serves a request."""
    return cast("ConsoleContext", request.app.state.context)
