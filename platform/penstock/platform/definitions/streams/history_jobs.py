"""The jobs that run a pipeline's history again, and that have a stream go by a changed definition."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from dagster import (
    Array,
    Bool,
    Enum,
    EnumValue,
    Field,
    Int,
    JobDefinition,
    MetadataValue,
    Noneable,
    OpExecutionContext,
    String,
)

from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.platform.definitions.asset_keys import SPARK_POOL
from penstock.platform.definitions.config_job import build_config_job
from penstock.platform.services.replay import ReplayRequest, ReplayResult
from penstock.platform.services.upgrades import UpgradePlan, UpgradeRequest

REPLAY_DESCRIPTION = (
    "Run a pipeline's history again, and put the results in the place of the old ones, or leave them beside."
)
UPGRADE_DESCRIPTION = (
    "Have a stream go by its pipeline as it is written now: by a restart, a rewritten state, or a replay."
)
ACCEPTABLE_CLASSES = (UpgradeClass.COMPATIBLE, UpgradeClass.MIGRATABLE, UpgradeClass.REPLAY)
ProgressReporter = Callable[[str], None]


def build_replay_job(
    pipelines: Sequence[str], run_replay: Callable[[ReplayRequest, ProgressReporter], ReplayResult]
) -> JobDefinition:
    """Make the job. A run that was killed is finished by another of the same name."""
    schema = {
        "stream": _pipeline_field(pipelines),
        "start": Field(
            String,
            default_value="topic",
            description="topic (as far back as it goes), archive (and the topic after it), offset:N, "
            "or time:2026-01-31T12:00",
        ),
        "switch": Field(
            Bool,
            default_value=True,
            description="true: the results take the place of the stream's; "
            "false: they stay beside, in runs/STREAM/NAME of the warehouse",
        ),
        "drop_earlier": Field(
            Bool,
            default_value=False,
            description="true: accept that the tables hold nothing of records before the start",
        ),
        "name": Field(
            String,
            default_value="",
            description="the replay's name; one that was cut off goes on under its name; empty for a new one",
        ),
        "records_per_batch": Field(
            Noneable(Int), default_value=None, description="cut the history into batches of about so many"
        ),
    }

    def replay_op(context: OpExecutionContext) -> None:
        result = run_replay(ReplayRequest(**context.op_config), lambda text: context.log.info("%s", text))
        context.add_output_metadata({"replay": MetadataValue.json(asdict(result))})

    return build_config_job(
        "stream_replay", "replay_stream", REPLAY_DESCRIPTION, schema, replay_op, SPARK_POOL
    )


def build_upgrade_job(
    pipelines: Sequence[str], run_upgrade: Callable[[UpgradeRequest, ProgressReporter], UpgradePlan]
) -> JobDefinition:
    """Make the job. What it does is what `penstock stream plan-upgrade` shows, and no more than is accepted."""
    schema = {
        "stream": _pipeline_field(pipelines),
        "from_now": Field(
            Array(String), default_value=[], description="columns that may count only what comes from now on"
        ),
        "start": Field(
            String,
            default_value="",
            description="where a replay begins, where it takes one; empty for the archive, else the topic",
        ),
        "accept": Field(
            Enum(
                "UpgradeClass",
                [
                    EnumValue(upgrade_class.label, description=upgrade_class.description)
                    for upgrade_class in ACCEPTABLE_CLASSES
                ],
            ),
            default_value=UpgradeClass.COMPATIBLE.label,
            description="the most that it may take; one that takes more is refused, and says what",
        ),
    }

    def upgrade_op(context: OpExecutionContext) -> None:
        op_config = context.op_config
        accepted_class = UpgradeClass[op_config["accept"].upper()]
        request = UpgradeRequest(
            op_config["stream"], tuple(op_config["from_now"]), op_config["start"], accepted_class
        )
        upgrade_plan = run_upgrade(request, lambda text: context.log.info("%s", text))
        context.add_output_metadata({"upgrade": MetadataValue.json(upgrade_plan.as_json())})

    return build_config_job(
        "stream_upgrade", "upgrade_stream", UPGRADE_DESCRIPTION, schema, upgrade_op, SPARK_POOL
    )


def _pipeline_field(pipelines: Sequence[str]) -> Field:
    return Field(Enum("PipelineName", [EnumValue(name) for name in pipelines]), description="which pipeline")
