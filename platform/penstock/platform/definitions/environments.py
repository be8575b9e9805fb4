"""Environments in Dagster: an asset each, plan, approve and apply as jobs, drift as a check on a schedule.

An apply takes only a plan that was shown (its id is in the plan job's log and metadata) and approved.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    AssetSelection,
    AssetSpec,
    DefaultScheduleStatus,
    Definitions,
    Field,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    RunRequest,
    ScheduleDefinition,
    SkipReason,
    TableColumn,
    TableRecord,
    TableSchema,
    asset_check,
    config_mapping,
    define_asset_job,
    graph,
    in_process_executor,
    op,
)
from dagster import AssetChecksDefinition as Check

from penstock.infra.environments import Environment, EnvironmentOutputs
from penstock.infra.environments.errors import NotAppliedError
from penstock.infra.errors import InfraError
from penstock.infra.terraform import Plan, ResourceChange
from penstock.infra.terraform.errors import StateLockedError

Open = Callable[[str], Environment]
GROUP = "environments"
CHECK = "drift"
_COLUMNS = ("action", "resource", "change")


@dataclass(frozen=True)
class Around:
    """What the definitions need of the platform: how to open one, the time, and who answers for it.

    `begun` says which have anything to look at, `drift_cron` how often those are looked at.
    """

    open: Open
    begun: Callable[[], Sequence[str]]
    now: Callable[[], datetime]
    owner: str
    drift_cron: str = "*/15 * * * *"


def environment_definitions(names: Sequence[str], around: Around) -> Definitions:
    """Assets, checks, jobs and schedule of these environments; none is opened at load."""
    checks = [_drift_check(name, around) for name in names]
    watch = define_asset_job("environment_drift", selection=AssetSelection.checks(*checks))
    schedule = ScheduleDefinition(
        name="environment_drift",
        job=watch,
        cron_schedule=around.drift_cron,
        execution_fn=lambda _context: _due(around.begun()),
        default_status=DefaultScheduleStatus.RUNNING,
        description="Compares environments with what was applied; where none is, it does nothing.",
    )
    return Definitions(
        assets=[spec for name in names for spec in _specs(name, around.owner)],
        asset_checks=checks,
        jobs=[*_jobs(names, around), watch],
        schedules=[schedule],
    )


def _due(begun: Sequence[str]) -> RunRequest | SkipReason:
    keys = [AssetCheckKey(environment_key(name), CHECK) for name in begun]
    return RunRequest(asset_check_keys=keys) if keys else SkipReason("no environment was applied from here")


def environment_key(name: str) -> AssetKey:
    """The asset of an environment."""
    return AssetKey([GROUP, name])


def _specs(name: str, owner: str) -> Iterator[AssetSpec]:
    whole = environment_key(name)
    yield AssetSpec(
        whole, group_name=GROUP, owners=[owner], kinds={"terraform"}, description=f"The environment {name}."
    )
    for part, what in (("kafka", "Kafka's brokers"), ("spark", "The Spark cluster")):
        key = AssetKey([GROUP, name, part])
        yield AssetSpec(
            key,
            deps=[whole],
            group_name=GROUP,
            owners=[owner],
            kinds={part},
            description=f"{what} of {name}.",
        )


def _drift_check(name: str, around: Around) -> Check:
    @asset_check(asset=environment_key(name), name=CHECK, description="Is it still as it was applied?")
    def drift() -> AssetCheckResult:
        try:
            found = around.open(name).drift()
        except NotAppliedError as error:
            return AssetCheckResult(passed=True, metadata={"state": str(error)})
        except StateLockedError as error:
            return _unknown(error, AssetCheckSeverity.WARN)
        except InfraError as error:
            return _unknown(error, AssetCheckSeverity.ERROR)
        return AssetCheckResult(
            passed=not found,
            severity=AssetCheckSeverity.ERROR,
            metadata={"changes": _table(found.changes), "count": len(found.changes)},
        )

    return drift


def _unknown(error: InfraError, severity: AssetCheckSeverity) -> AssetCheckResult:
    """Whether it drifted could not be found out: that is not the same as that it did not."""
    return AssetCheckResult(passed=False, severity=severity, metadata={"not_looked_at": str(error)})


def _jobs(names: Sequence[str], around: Around) -> Iterator[JobDefinition]:
    name = Field(str, description=f"which environment: {', '.join(names)}")
    plan_id = Field(str, description="the id of a plan that was shown")
    destroy = Field(bool, default_value=False, description="plan to remove everything")
    by = Field(str, description="who approves of it, as they say: Dagster has no users to compare it with")

    def plan(context: OpExecutionContext, values: Mapping[str, str]) -> None:
        made = around.open(values["environment"]).plan(destroy=bool(values["destroy"]))
        context.add_output_metadata(_of_plan(made))
        context.log.info("plan %s: %s", made.plan_id, made)

    def approve(context: OpExecutionContext, values: Mapping[str, str]) -> None:
        by = f"{values['by']} (as said in run {context.run_id})"
        given = around.open(values["environment"]).approve(values["plan"], by, around.now())
        context.log.info("plan %s was approved by %s", given.plan_id, given.by)

    def apply(context: OpExecutionContext, values: Mapping[str, str]) -> None:
        environment = around.open(values["environment"])
        told = context.log.info
        environment.apply(values["plan"], approved=True, on_event=lambda event: told("%s", event))
        if environment.workspace.resources():
            for one in _materializations(environment.name, environment.outputs()):
                context.log_event(one)

    yield _job(
        "plan", "Find out what would be changed, and show it.", plan, environment=name, destroy=destroy
    )
    yield _job("approve", "Say that a plan may be applied.", approve, environment=name, plan=plan_id, by=by)
    yield _job("apply", "Apply a plan that was shown and approved.", apply, environment=name, plan=plan_id)


def _job(
    verb: str, description: str, do: Callable[[OpExecutionContext, Mapping[str, str]], None], **schema: Field
) -> JobDefinition:
    step = f"{verb}_environment"

    @op(name=step, description=description, config_schema=schema)
    def act(context: OpExecutionContext) -> None:
        do(context, context.op_config)

    @graph(name=f"environment_{verb}", description=description)
    def whole() -> None:
        act()

    @config_mapping(config_schema=schema)
    def flat(values: dict[str, object]) -> dict[str, object]:
        return {"ops": {step: {"config": values}}}

    return whole.to_job(config=flat, executor_def=in_process_executor)


def _materializations(name: str, outputs: EnvironmentOutputs) -> Iterator[AssetMaterialization]:
    yield AssetMaterialization(
        environment_key(name),
        metadata={"warehouse": outputs.warehouse.root, "control_store": outputs.control_store.url},
    )
    kafka, spark = outputs.kafka, outputs.spark
    yield AssetMaterialization(
        AssetKey([GROUP, name, "kafka"]),
        metadata={"brokers": kafka.bootstrap, "protocol": kafka.security.protocol},
    )
    yield AssetMaterialization(
        AssetKey([GROUP, name, "spark"]),
        metadata={"kind": spark.kind, "where": spark.master or spark.application},
    )


def _of_plan(made: Plan) -> dict[str, MetadataValue]:
    return {
        "plan": MetadataValue.text(made.plan_id),
        "summary": MetadataValue.text(str(made)),
        "changes": _table([change for change in made.changes if change.changes_something]),
    }


def _table(changes: Sequence[ResourceChange]) -> MetadataValue:
    """The changes as Dagster shows a table; sensitive values are masked in them already."""
    return MetadataValue.table(
        records=[TableRecord(dict(zip(_COLUMNS, _cells(change), strict=True))) for change in changes],
        schema=TableSchema(columns=[TableColumn(name, "string") for name in _COLUMNS]),
    )


def _cells(change: ResourceChange) -> tuple[str, str, str]:
    values = ", ".join(
        f"{one.path}: {one.before} -> {one.after}" for one in change.values if one.path != "id"
    )
    return str(change.action), change.address, values
