"""Environments: planned, approved, applied, watched for drift, costed, and used. Free of Dagster.

catalog = EnvironmentCatalog(root, home)
environment = catalog.open("local")
plan = environment.plan()
environment.apply(plan.plan_id)
outputs = environment.read_outputs()
"""

from penstock.infra.environments.catalog import EnvironmentCatalog
from penstock.infra.environments.cost import CostEstimate, MonthlyUsage, estimate_cost
from penstock.infra.environments.environment import Environment, EnvironmentDrift, PlanApproval
from penstock.infra.environments.errors import (
    EnvironmentFailedError,
    NotApprovedError,
    UnknownEnvironmentError,
)
from penstock.infra.environments.outputs import (
    ControlStoreOutputs,
    EnvironmentOutputs,
    KafkaOutputs,
    KafkaSecurityOutputs,
    SparkOutputs,
    WarehouseOutputs,
    platform_settings,
)

__all__ = [
    "ControlStoreOutputs",
    "CostEstimate",
    "Environment",
    "EnvironmentCatalog",
    "EnvironmentDrift",
    "EnvironmentFailedError",
    "EnvironmentOutputs",
    "KafkaOutputs",
    "KafkaSecurityOutputs",
    "MonthlyUsage",
    "NotApprovedError",
    "PlanApproval",
    "SparkOutputs",
    "UnknownEnvironmentError",
    "WarehouseOutputs",
    "estimate_cost",
    "platform_settings",
]
