"""How a program fares: what its tether told, held against what supervisord knows of the tether."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.infra.ports import answers
from penstock.infra.processes.layout import Layout
from penstock.infra.tether_spec import TetherSpec, TetherState

FAILING_AFTER = 3
"""Ends in a row, none after a long run, from which on a program counts as failing."""


@dataclass(frozen=True)
class ProgramStatus:
    """One program, seen from outside."""

    name: str
    state: str
    """waiting, starting, running, retrying, stopping, stopped or done."""
    ready: bool
    """It runs and answers where it should, or it is done."""
    pid: int | None
    """The program's own process id, not its tether's."""
    tether_pid: int | None
    since: float | None
    """When the state began, seconds since the epoch."""
    restarts: int
    failures: int
    detail: str
    """In words: what it waits for, how it ended last."""
    log: Path

    @property
    def failing(self) -> bool:
        """It was started again and again, and ended each time before long."""
        return self.failures >= FAILING_AFTER and self.state != "stopped"


def judge(info: Mapping[str, Any], spec: TetherSpec, layout: Layout) -> ProgramStatus:
    """Judge one program by what supervisord answered of its tether."""
    told = TetherState.read(layout.state(spec.name))
    tethered = info["statename"] in ("STARTING", "RUNNING", "STOPPING")
    fresh = told is not None and told.since >= info["start"] - 1
    if tethered and not fresh:
        told, state = None, "waiting"  # the tether is so young that it has told nothing
    elif told is None or not tethered:
        state = "done" if told is not None and fresh and told.state == "done" else "stopped"
    else:
        state = told.state
    runs = state in ("starting", "running")
    return ProgramStatus(
        name=spec.name,
        state=state,
        ready=_is_ready(state, spec),
        pid=told.pid if told and runs else None,
        tether_pid=int(info["pid"]) or None,
        since=told.since if told else None,
        restarts=told.restarts if told else 0,
        failures=told.failures if told and tethered else 0,
        detail=_detail(info, told),
        log=layout.program_log(spec.name),
    )


def _is_ready(state: str, spec: TetherSpec) -> bool:
    if state == "done":
        return True
    if spec.answers_at is None and spec.ready_file is None:
        return state == "running"
    return (
        state in ("starting", "running")
        and (spec.answers_at is None or answers(*spec.answers_at))
        and (spec.ready_file is None or Path(spec.ready_file).exists())
    )


def _detail(info: Mapping[str, Any], told: TetherState | None) -> str:
    if info["statename"] in ("BACKOFF", "FATAL"):
        return f"its tether cannot be started: {info['spawnerr']}"
    return told.detail if told else ""
