"""Local processes under supervisord: programs as plain data, and the manager that runs them."""

from penstock.infra.processes.manager import ProcessManager
from penstock.infra.processes.program import Program
from penstock.infra.processes.program_status import ProgramStatus

__all__ = ["ProcessManager", "Program", "ProgramStatus"]
