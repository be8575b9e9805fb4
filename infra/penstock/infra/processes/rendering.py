"""The configuration of supervisord, from programs: text, nothing is done here."""

import hashlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.infra.errors import ManagerError
from penstock.infra.processes.layout import Layout
from penstock.infra.processes.program import Program
from penstock.infra.tether_spec import TetherSpec

MANAGER = "manager"
TETHER = "penstock.infra.tether"
SUPERVISORD = "supervisor.supervisord"
STOP_MARGIN_SECONDS = 3
"""What supervisord gives a tether beyond the time that the tether gives its program."""

LOG_BYTES = 10 * 1024 * 1024
LOG_BACKUPS = 3
MANAGER_STOP_SECONDS = 10.0


def fingerprint(spec: TetherSpec) -> str:
    """Return a short name for all that a tether is told."""
    return hashlib.sha256(spec.as_json().encode()).hexdigest()[:12]


def render(programs: Sequence[Program], layout: Layout) -> str:
    """Return the whole configuration. Each program is started through its tether.

    supervisord runs in the manager's folder and paths are relative to it: it expands % in some values
    twice and in others once, so that a folder's name with one could not be written for sure.
    """
    sections = [_head(layout), *(_section(program, layout) for program in programs)]
    return "\n".join(sections)


def keeper_spec(layout: Layout) -> TetherSpec:
    """Return what the tether around supervisord is told: restarted when it is killed, never twice."""
    command = (sys.executable, "-m", SUPERVISORD, "-n", "-s", "-c", layout.configuration.name)
    return TetherSpec(
        name=MANAGER,
        command=command,
        state_file=str(layout.state(MANAGER)),
        stop_seconds=MANAGER_STOP_SECONDS,
        lock_file=str(layout.lock),
    )


def _head(layout: Layout) -> str:
    return f"""[unix_http_server]
file = {_value(layout.socket, layout)}
chmod = 0700

[supervisord]
logfile = {_value(layout.log, layout)}
logfile_maxbytes = {LOG_BYTES // 10}
logfile_backups = 1
pidfile = supervisord.pid
nodaemon = true
nocleanup = true

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""


def _section(program: Program, layout: Layout) -> str:
    spec = layout.spec(program.name, fingerprint(program.spec(layout.state(program.name))))
    command = shlex.join([sys.executable, "-m", TETHER, _value(spec, layout)]).replace("%", "%%")
    # A tether ends with 0 when its program is done or stopped, and by itself never otherwise.
    return f"""[program:{program.name}]
command = {command}
priority = {program.start_order}
startsecs = {0 if program.until_done else 1}
startretries = 1000000
autorestart = unexpected
exitcodes = 0
stopwaitsecs = {int(program.stop_seconds) + STOP_MARGIN_SECONDS}
redirect_stderr = true
stdout_logfile = {_value(layout.program_log(program.name), layout)}
stdout_logfile_maxbytes = {LOG_BYTES}
stdout_logfile_backups = {LOG_BACKUPS}
"""


def _value(path: Path, layout: Layout) -> str:
    value = os.path.relpath(path, layout.directory)
    if any(sign in value for sign in ("%", "\n", " ;", " #")):
        raise ManagerError(
            f"{value!r} cannot stand in supervisord's configuration because of a %, ';' or '#' in it. "
            "Give the folder another name."
        )
    return value
