"""What Terraform tells while it works, one typed event a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.infra.terraform.diagnostics import Diagnostic, read_diagnostic


class Phase(StrEnum):
    """Where the work on one resource stands."""

    STARTED = "started"
    WORKING = "working"
    OUTPUT = "output"
    DONE = "done"
    FAILED = "failed"


_PHASES = {
    "apply_start": Phase.STARTED,
    "apply_progress": Phase.WORKING,
    "provision_progress": Phase.OUTPUT,
    "apply_complete": Phase.DONE,
    "apply_errored": Phase.FAILED,
}


@dataclass(frozen=True)
class Progress:
    """A step in the work on one resource; `message` is one line of Terraform's or the program's own."""

    address: str
    action: str
    phase: Phase
    seconds: float
    message: str

    def __str__(self) -> str:
        return self.message


Event = Progress | Diagnostic


def read_event(line: str) -> Event | None:
    """Make an event of a line; None for what is neither progress nor a diagnostic."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    if document.get("type") == "diagnostic":
        return read_diagnostic(document["diagnostic"])
    phase = _PHASES.get(document.get("type", ""))
    return _progress(document, phase) if phase else None


def unfinished(events: Iterable[Event]) -> tuple[str, ...]:
    """The resources that were begun and neither done nor failed."""
    open_ones: dict[str, None] = {}
    for event in events:
        if not isinstance(event, Progress):
            continue
        if event.phase is Phase.STARTED:
            open_ones[event.address] = None
        elif event.phase in (Phase.DONE, Phase.FAILED):
            open_ones.pop(event.address, None)
    return tuple(open_ones)


def _progress(document: Mapping[str, Any], phase: Phase) -> Progress:
    hook = document["hook"]
    return Progress(
        address=hook["resource"]["addr"],
        action=hook.get("action", "provision"),
        phase=phase,
        seconds=float(hook.get("elapsed_seconds", 0)),
        message=document.get("@message", ""),
    )
