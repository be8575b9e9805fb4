"""Events that Terraform reports during a command, one per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.infra.terraform.diagnostics import Diagnostic, parse_diagnostic


class ResourcePhase(StrEnum):
    """The phase of the work on one resource."""

    STARTED = "started"
    IN_PROGRESS = "working"
    OUTPUT = "output"
    DONE = "done"
    FAILED = "failed"


_PHASE_BY_TYPE = {
    "apply_start": ResourcePhase.STARTED,
    "apply_progress": ResourcePhase.IN_PROGRESS,
    "provision_progress": ResourcePhase.OUTPUT,
    "apply_complete": ResourcePhase.DONE,
    "apply_errored": ResourcePhase.FAILED,
}


@dataclass(frozen=True)
class ResourceProgress:
    """A step in the work on one resource; `message` is one line of Terraform's or the program's own."""

    address: str
    action: str
    phase: ResourcePhase
    elapsed_s: float
    message: str

    def __str__(self) -> str:
        return self.message


TerraformEvent = ResourceProgress | Diagnostic


def parse_event(line: str) -> TerraformEvent | None:
    """Parse a line into an event; None if it is neither progress nor a diagnostic."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    if document.get("type") == "diagnostic":
        return parse_diagnostic(document["diagnostic"])
    phase = _PHASE_BY_TYPE.get(document.get("type", ""))
    return _parse_progress(document, phase) if phase else None


def find_unfinished_resources(events: Iterable[TerraformEvent]) -> tuple[str, ...]:
    """Return the resources that were started and neither finished nor failed."""
    open_addresses: dict[str, None] = {}
    for event in events:
        if not isinstance(event, ResourceProgress):
            continue
        if event.phase is ResourcePhase.STARTED:
            open_addresses[event.address] = None
        elif event.phase in (ResourcePhase.DONE, ResourcePhase.FAILED):
            open_addresses.pop(event.address, None)
    return tuple(open_addresses)


def _parse_progress(document: Mapping[str, Any], phase: ResourcePhase) -> ResourceProgress:
    hook = document["hook"]
    return ResourceProgress(
        address=hook["resource"]["addr"],
        action=hook.get("action", "provision"),
        phase=phase,
        elapsed_s=float(hook.get("elapsed_seconds", 0)),
        message=document.get("@message", ""),
    )
