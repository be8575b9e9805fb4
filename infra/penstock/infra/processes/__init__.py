"""Local processes under supervisord: programs as plain data, and the manager that runs them."""

from penstock.infra.processes.manager import ProcessManager
from penstock.infra.processes.program import Program
from penstock.infra.processes.program_status import ProgramStatus
from penstock.infra.processes.supervisord_config import MANAGER_NAME

__all__ = ["MANAGER_NAME", "ProcessManager", "Program", "ProgramStatus"]
