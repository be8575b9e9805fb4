"""The configuration of supervisord, from programs: text, nothing is done here."""

import hashlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.infra.errors import ProcessManagerError
from penstock.infra.processes.manager_layout import ManagerLayout
from penstock.infra.processes.program import Program
from penstock.infra.tether_spec import TetherSpec

MANAGER_NAME = "manager"
TETHER_MODULE = "penstock.infra.tether"
SUPERVISORD_MODULE = "supervisor.supervisord"
STOP_MARGIN_S = 3
"""Time that supervisord gives a tether in addition to the stop time of its program."""

MAX_LOG_BYTES = 10 * 1024 * 1024
LOG_BACKUP_COUNT = 3
MANAGER_STOP_TIMEOUT_S = 10.0


def spec_fingerprint(spec: TetherSpec) -> str:
    """Return a short hash of a tether's spec."""
    return hashlib.sha256(spec.as_json().encode()).hexdigest()[:12]


def render_supervisord_config(programs: Sequence[Program], layout: ManagerLayout) -> str:
    """Render the whole configuration. Each program is started through its tether.

    supervisord runs in the manager's folder and paths are relative to it: it expands % in some values
    twice and in others once, so that a folder's name with one could not be written for sure.
    """
    sections = [_render_head(layout), *(_render_program(program, layout) for program in programs)]
    return "\n".join(sections)


def build_keeper_spec(layout: ManagerLayout) -> TetherSpec:
    """Return the spec of the tether around supervisord, which restarts it and never runs twice."""
    command = (sys.executable, "-m", SUPERVISORD_MODULE, "-n", "-s", "-c", layout.config_file.name)
    return TetherSpec(
        name=MANAGER_NAME,
        command=command,
        state_file=str(layout.state_file(MANAGER_NAME)),
        stop_seconds=MANAGER_STOP_TIMEOUT_S,
        lock_file=str(layout.keeper_lock_file),
    )


def _render_head(layout: ManagerLayout) -> str:
    return f"""[unix_http_server]
file = {_format_path(layout.socket_path, layout)}
chmod = 0700

[supervisord]
logfile = {_format_path(layout.manager_log_file, layout)}
logfile_maxbytes = {MAX_LOG_BYTES // 10}
logfile_backups = 1
pidfile = supervisord.pid
nodaemon = true
nocleanup = true

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""


def _render_program(program: Program, layout: ManagerLayout) -> str:
    spec_file = layout.spec_file(
        program.name, spec_fingerprint(program.to_tether_spec(layout.state_file(program.name)))
    )
    command = shlex.join([sys.executable, "-m", TETHER_MODULE, _format_path(spec_file, layout)]).replace(
        "%", "%%"
    )
    # A tether exits with 0 only if its program is done or stopped.
    return f"""[program:{program.name}]
command = {command}
priority = {program.start_order}
startsecs = {0 if program.until_done else 1}
startretries = 1000000
autorestart = unexpected
exitcodes = 0
stopwaitsecs = {int(program.stop_seconds) + STOP_MARGIN_S}
redirect_stderr = true
stdout_logfile = {_format_path(layout.program_log_file(program.name), layout)}
stdout_logfile_maxbytes = {MAX_LOG_BYTES}
stdout_logfile_backups = {LOG_BACKUP_COUNT}
"""


def _format_path(path: Path, layout: ManagerLayout) -> str:
    value = os.path.relpath(path, layout.directory)
    if any(sign in value for sign in ("%", "\n", " ;", " #")):
        raise ProcessManagerError(
            f"{value!r} cannot stand in supervisord's configuration because of a %, ';' or '#' in it. "
            "Give the folder another name."
        )
    return value
