"""Environments: planned, approved, applied, watched for drift, costed, and used. Free of Dagster.

catalog = Catalog(root, home)
environment = catalog.open("local")
plan = environment.plan()
environment.apply(plan.plan_id)
outputs = environment.outputs()
"""

from penstock.infra.environments.catalog import Catalog
from penstock.infra.environments.cost import Estimate, Usage, estimate
from penstock.infra.environments.environment import Approval, Drift, Environment
from penstock.infra.environments.errors import (
    EnvironmentFailedError,
    NotApprovedError,
    UnknownEnvironmentError,
)
from penstock.infra.environments.outputs import (
    ControlStore,
    EnvironmentOutputs,
    Kafka,
    Security,
    Spark,
    Warehouse,
    platform_settings,
)

__all__ = [
    "Approval",
    "Catalog",
    "ControlStore",
    "Drift",
    "Environment",
    "EnvironmentFailedError",
    "EnvironmentOutputs",
    "Estimate",
    "Kafka",
    "NotApprovedError",
    "Security",
    "Spark",
    "UnknownEnvironmentError",
    "Usage",
    "Warehouse",
    "estimate",
    "platform_settings",
]
