"""Local processes under supervisord: what is to run is plain data, and Manager makes it so."""

from penstock.infra.processes.manager import Manager
from penstock.infra.processes.program import Program
from penstock.infra.processes.status import ProgramStatus

__all__ = ["Manager", "Program", "ProgramStatus"]
