"""Kinds of windows, triggers, aggregates and sinks outside of the source tree, and their installation.

Each constant is the text of a module. A test writes it to a folder, so that no file of the tree knows of it.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.core.kind_registry import KindRegistry

TRIGGER = '''
"""A trigger that fires when a window has received nothing for a while."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.columnar import StateColumn
from penstock.engine.definition.argument_checks import require_positive
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.engine.triggers.machine import TriggerMachine
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterInactivity(Trigger):
    """Ready when the batch clock is `gap` after the clock of the newest element since it started."""

    gap: int

    def __post_init__(self):
        require_positive(self.gap, "trigger.after_inactivity")

    def describe(self):
        return f"{format_duration(self.gap)} after the newest record, on the batch clock"

    def create_machine(self, column_names):
        return InactivityMachine(column_names.next_name("inactive_at"), self.gap)

    @property
    def fires_once(self):
        return True


@keyword("after_inactivity")
def after_inactivity(gap: Duration) -> AfterInactivity:
    """Fire when no record has arrived for this long, on the batch clock."""
    return AfterInactivity(to_milliseconds(gap, "trigger.after_inactivity"))


@dataclass(frozen=True)
class InactivityMachine(TriggerMachine):
    name: str
    gap: int

    def state_columns(self):
        yield StateColumn(self.name, pa.int64(), MAX_TIMESTAMP_MS)

    def on_elements(self, rows, new_elements, batch_time):
        # Once it is ready it stays ready, even if an element arrives before it fires.
        restarts = (new_elements.counts > 0) & (rows[self.name] > batch_time.clock)
        rows[self.name][restarts] = batch_time.clock + self.gap

    def should_fire(self, rows, batch_time):
        return np.asarray(rows[self.name] <= batch_time.clock)

    def next_timer(self, rows, batch_time):
        return np.where(rows[self.name] > batch_time.clock, rows[self.name], MAX_TIMESTAMP_MS)

    def on_merge(self, rows, window_merge):
        is_waiting = window_merge.has_new_elements & (window_merge.sources[self.name] < MAX_TIMESTAMP_MS)
        waiting = window_merge.for_sources(is_waiting)
        latest = np.full(len(rows), -1, np.int64)
        np.maximum.at(latest, waiting.target_rows, waiting.sources[self.name])
        rows[self.name][latest >= 0] = latest[latest >= 0]
'''

TRIGGER_REFERENCE = '''
"""The reference of AfterInactivity, one window at a time."""

from outside_trigger import AfterInactivity

from penstock.conformance.reference.triggers import ReferenceTrigger, TriggerReadiness, create_trigger


class ReferenceAfterInactivity(ReferenceTrigger):
    def __init__(self, gap):
        self.gap = gap
        self.inactive_at = None

    def on_elements(self, arrivals):
        is_ready = self.inactive_at is not None and self.inactive_at <= arrivals.clock
        if arrivals.elements and not is_ready:
            self.inactive_at = arrivals.clock + self.gap

    def check_readiness(self, context):
        is_ready = self.inactive_at is not None and self.inactive_at <= context.clock
        return TriggerReadiness.READY if is_ready else TriggerReadiness.WAITING

    def on_fire(self, context):
        return True

    def on_merge(self, merged, context):
        waiting = [part.trigger.inactive_at for part in merged if part.has_pending]
        self.inactive_at = max((time for time in waiting if time is not None), default=None)


@create_trigger.register
def create_after_inactivity(trigger: AfterInactivity):
    return ReferenceAfterInactivity(trigger.gap)
'''


def write_modules(folder: Path, monkeypatch: pytest.MonkeyPatch, **sources: str) -> None:
    """Write modules to a folder and put it on the import path, as long as the test runs."""
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(folder)


def install_entry_points(folder: Path, group: str, **references: str) -> None:
    """Make a folder on the import path an installed distribution with these entry points."""
    metadata = folder / "outside_kinds-1.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-kinds\nVersion: 1.0\n")
    lines = "".join(f"{name} = {reference}\n" for name, reference in references.items())
    with (metadata / "entry_points.txt").open("a", encoding="utf-8") as file:
        file.write(f"[{group}]\n{lines}")


def forget_kinds(registry: KindRegistry[Any]) -> None:
    """Make a registry scan the packages and entry points again."""
    registry.__dict__.pop("kinds_by_name", None)
