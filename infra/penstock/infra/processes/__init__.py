"""Local processes under supervisord: what is to run is plain data, and Manager makes it so."""

from penstock.infra.processes.manager import ProcessManager
from penstock.infra.processes.program import Program
from penstock.infra.processes.program_status import ProgramStatus

__all__ = ["ProcessManager", "Program", "ProgramStatus"]
