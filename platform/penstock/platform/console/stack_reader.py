"""Reads the state of the stack for all viewers: once per interval, and only when somebody looks."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.platform.control import ControlStore
from penstock.platform.services.stream_catalog import find_invalid_pipelines
from penstock.platform.settings import Settings
from penstock.platform.stack.manager import stack_manager
from penstock.platform.stack.stack_view import StackView, read_store_view
from penstock.platform.stack.stream_condition import describe_note, describe_state

READ_INTERVAL_MS = 1_000
NOTES_INTERVAL_MS = 30_000
"""Notes need the definition files, which take longer to read and change seldom. A stream whose state changes gets a
new note at once."""


@dataclass(frozen=True)
class StackReading:
    """The stack at one time, with the state of each stream in a word and what to know about it."""

    view: StackView
    states: Mapping[str, str]
    notes: Mapping[str, str]
    invalid_files: Mapping[str, str]


class StackReader:
    """Returns a reading that is at most a second old."""

    def __init__(self, settings: Settings, store: ControlStore, clock: Callable[[], int]) -> None:
        self._settings, self._store, self._clock = settings, store, clock
        self._lock = threading.Lock()
        self._reading: StackReading | None = None
        self._notes_at_ms = 0

    def read(self) -> StackReading:
        """Return the current reading; callers that come at the same time share one."""
        with self._lock:
            if self._reading is None or self._clock() - self._reading.view.at_ms >= READ_INTERVAL_MS:
                self._reading = self._read_stack()
            return self._reading

    def forget(self) -> None:
        """Read the stack again for the next caller, because an action changed it."""
        with self._lock:
            self._reading = None

    def _read_stack(self) -> StackReading:
        programs = stack_manager(self._settings).list_statuses()
        view = read_store_view(self._settings, self._store, programs, self._clock)
        states = {stream.stream: describe_state(view, stream) for stream in view.streams}
        previous = self._reading
        if previous is None or view.at_ms - self._notes_at_ms >= NOTES_INTERVAL_MS:
            self._notes_at_ms = view.at_ms
            invalid_files = {name: str(error) for name, error in find_invalid_pipelines().items()}
            notes = {stream.stream: describe_note(view, stream) for stream in view.streams}
            return StackReading(view, states, notes, invalid_files)
        notes = {
            stream.stream: previous.notes[stream.stream]
            if previous.states.get(stream.stream) == states[stream.stream]
            else describe_note(view, stream)
            for stream in view.streams
        }
        return StackReading(view, states, notes, previous.invalid_files)
