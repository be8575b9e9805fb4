"""Terraform driven from Python: typed plans, saved plans only, progress, errors as exceptions.

engine = find_engine("embedded")
workspace = Workspace(Path("infra/environments/local"), Path(".penstock/environments/local"), engine)
plan = workspace.plan()
print(plan)
workspace.apply(plan, on_event=print)
"""

from penstock.infra.terraform.diagnostics import Diagnostic, LockHolder
from penstock.infra.terraform.engines import Engine, embedded_engine, find_engine, system_engine
from penstock.infra.terraform.errors import TerraformError
from penstock.infra.terraform.events import Event, Phase, Progress
from penstock.infra.terraform.mirrors import find_mirrors
from penstock.infra.terraform.plans import Action, OutputChange, Plan, Resource, ResourceChange, ValueChange
from penstock.infra.terraform.workspace import Limits, Output, Workspace

__all__ = [
    "Action",
    "Diagnostic",
    "Engine",
    "Event",
    "Limits",
    "LockHolder",
    "Output",
    "OutputChange",
    "Phase",
    "Plan",
    "Progress",
    "Resource",
    "ResourceChange",
    "TerraformError",
    "ValueChange",
    "Workspace",
    "embedded_engine",
    "find_engine",
    "find_mirrors",
    "system_engine",
]
