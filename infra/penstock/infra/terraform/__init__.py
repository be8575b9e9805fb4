"""Terraform driven from Python: typed plans, saved plans only, progress, errors as exceptions.

engine = find_engine("embedded")
workspace = Workspace(Path("infra/environments/local"), Path(".penstock/environments/local"), engine)
plan = workspace.plan()
print(plan)
workspace.apply(plan, on_event=print)
"""

from penstock.infra.terraform.diagnostics import Diagnostic, StateLockHolder
from penstock.infra.terraform.engines import TerraformEngine, embedded_engine, find_engine, system_engine
from penstock.infra.terraform.errors import TerraformError
from penstock.infra.terraform.events import ResourcePhase, ResourceProgress, TerraformEvent
from penstock.infra.terraform.plans import (
    AttributeChange,
    OutputChange,
    PlanAction,
    PlannedResource,
    ResourceChange,
    TerraformPlan,
)
from penstock.infra.terraform.provider_mirrors import find_mirrors
from penstock.infra.terraform.workspace import TerraformOutput, TerraformTimeouts, TerraformWorkspace

__all__ = [
    "AttributeChange",
    "Diagnostic",
    "OutputChange",
    "PlanAction",
    "PlannedResource",
    "ResourceChange",
    "ResourcePhase",
    "ResourceProgress",
    "StateLockHolder",
    "TerraformEngine",
    "TerraformError",
    "TerraformEvent",
    "TerraformOutput",
    "TerraformPlan",
    "TerraformTimeouts",
    "TerraformWorkspace",
    "embedded_engine",
    "find_engine",
    "find_mirrors",
    "system_engine",
]
