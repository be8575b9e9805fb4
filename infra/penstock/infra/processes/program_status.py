"""The status of a program, from the state that its tether reported and from supervisord."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.infra.ports import accepts_connections
from penstock.infra.processes.manager_layout import ManagerLayout
from penstock.infra.tether_spec import TetherSpec, TetherState

FAILING_THRESHOLD = 3
"""Ends in a row, none after a long run, from which on a program counts as failing."""


@dataclass(frozen=True)
class ProgramStatus:
    """One program, seen from outside."""

    name: str
    state: str
    """waiting, starting, running, retrying, stopping, stopped or done."""
    ready: bool
    """The program runs and answers at its address, or it is done."""
    pid: int | None
    """Process id of the program, not of its tether."""
    tether_pid: int | None
    since: float | None
    """Start of the state, in seconds since the epoch."""
    restarts: int
    failures: int
    detail: str
    """Details: what the program waits for, or how it last exited."""
    log: Path

    @property
    def is_failing(self) -> bool:
        """Whether the program was restarted repeatedly and exited soon each time."""
        return self.failures >= FAILING_THRESHOLD and self.state != "stopped"


def derive_program_status(
    process_info: Mapping[str, Any], spec: TetherSpec, layout: ManagerLayout
) -> ProgramStatus:
    """Combine supervisord's process info and the tether's state into a status."""
    tether_state = TetherState.read(layout.state_file(spec.name))
    has_tether = process_info["statename"] in ("STARTING", "RUNNING", "STOPPING")
    is_fresh = tether_state is not None and tether_state.since >= process_info["start"] - 1
    if has_tether and not is_fresh:
        tether_state, state = None, "waiting"  # a new tether that has not reported yet
    elif tether_state is None or not has_tether:
        state = (
            "done" if tether_state is not None and is_fresh and tether_state.state == "done" else "stopped"
        )
    else:
        state = tether_state.state
    is_up = state in ("starting", "running")
    return ProgramStatus(
        name=spec.name,
        state=state,
        ready=_is_ready(state, spec),
        pid=tether_state.pid if tether_state and is_up else None,
        tether_pid=int(process_info["pid"]) or None,
        since=tether_state.since if tether_state else None,
        restarts=tether_state.restarts if tether_state else 0,
        failures=tether_state.failures if tether_state and has_tether else 0,
        detail=_describe_detail(process_info, tether_state),
        log=layout.program_log_file(spec.name),
    )


def _is_ready(state: str, spec: TetherSpec) -> bool:
    if state == "done":
        return True
    if spec.answers_at is None and spec.ready_file is None:
        return state == "running"
    return (
        state in ("starting", "running")
        and (spec.answers_at is None or accepts_connections(*spec.answers_at))
        and (spec.ready_file is None or Path(spec.ready_file).exists())
    )


def _describe_detail(process_info: Mapping[str, Any], tether_state: TetherState | None) -> str:
    if process_info["statename"] in ("BACKOFF", "FATAL"):
        return f"its tether cannot be started: {process_info['spawnerr']}"
    return tether_state.detail if tether_state else ""
