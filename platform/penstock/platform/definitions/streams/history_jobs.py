"""The jobs that replay a stream's history and that upgrade a stream to a changed pipeline."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from dagster import (
    Array,
    Bool,
    Definitions,
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

from penstock.core.progress import ProgressReporter
from penstock.engine.upgrade.upgrade_class import UpgradeClass
from penstock.platform.definitions.asset_keys import SPARK_POOL
from penstock.platform.definitions.config_job import build_config_job, build_name_field
from penstock.platform.definitions.context import DefinitionsContext
from penstock.platform.definitions.run_actions import RunActions
from penstock.platform.services.replay import ReplayRequest, ReplayResult, replay_stream
from penstock.platform.services.upgrades import UpgradePlan, UpgradeRequest, upgrade_stream

REPLAY_DESCRIPTION = (
    "Replay a pipeline's history, and replace the results of the stream or write them to separate tables."
)
UPGRADE_DESCRIPTION = (
    "Upgrade a stream to the current version of its pipeline: by a restart, a state migration, or a replay."
)
ACCEPTABLE_CLASSES = (UpgradeClass.COMPATIBLE, UpgradeClass.MIGRATABLE, UpgradeClass.REPLAY)


def build_definitions(context: DefinitionsContext) -> Definitions:
    """Build both jobs for every pipeline."""
    settings, pipelines = context.settings, context.pipeline_names
    actions = RunActions(settings.home)
    replay_job = build_replay_job(
        pipelines,
        actions,
        lambda request, report_progress: replay_stream(
            settings, context.open_store(), request, report_progress
        ),
    )
    upgrade_job = build_upgrade_job(
        pipelines,
        actions,
        lambda request, report_progress: upgrade_stream(
            settings, context.open_store(), request, report_progress
        ),
    )
    return Definitions(jobs=[replay_job, upgrade_job])


def build_replay_job(
    pipelines: Sequence[str],
    actions: RunActions,
    run_replay: Callable[[ReplayRequest, ProgressReporter], ReplayResult],
) -> JobDefinition:
    """Build the job. To finish a killed run, launch another with the same name."""
    schema = {
        "stream": _pipeline_field(pipelines),
        "start": Field(
            String,
            default_value="topic",
            description="topic (from its first record), archive (then the topic), offset:N, "
            "or time:2026-01-31T12:00",
        ),
        "switch": Field(
            Bool,
            default_value=True,
            description="true: replace the stream's results; "
            "false: write them to runs/STREAM/NAME of the warehouse",
        ),
        "drop_earlier": Field(
            Bool,
            default_value=False,
            description="true: accept that the tables lose results of records before the start, or that the "
            "contract no longer reads",
        ),
        "name": Field(
            String,
            default_value="",
            description="name of the replay; resumes an interrupted one of that name; empty for a new one",
        ),
        "records_per_batch": Field(
            Noneable(Int), default_value=None, description="approximate records per batch; default: one batch"
        ),
        "left_out": Field(
            Array(String),
            default_value=[],
            description="records to leave out, as TOPIC/PARTITION@OFFSET; they go to quarantine",
        ),
    }

    def replay_op(context: OpExecutionContext) -> None:
        config = context.op_config
        request = ReplayRequest(**{**config, "left_out": tuple(config["left_out"])})
        details = {"from": request.start, "beside": not request.switch}
        actions.record(context, "stream replay", request.stream, details)
        result = run_replay(request, lambda text: context.log.info("%s", text))
        context.add_output_metadata({"replay": MetadataValue.json(asdict(result))})

    return build_config_job(
        "stream_replay", "replay_stream", REPLAY_DESCRIPTION, schema, replay_op, SPARK_POOL
    )


def build_upgrade_job(
    pipelines: Sequence[str],
    actions: RunActions,
    run_upgrade: Callable[[UpgradeRequest, ProgressReporter], UpgradePlan],
) -> JobDefinition:
    """Build the job. It does what `penstock stream plan-upgrade` shows, up to the accepted class."""
    schema = {
        "stream": _pipeline_field(pipelines),
        "from_now": Field(
            Array(String),
            default_value=[],
            description="new columns that may start from now, without history",
        ),
        "start": Field(
            String,
            default_value="",
            description="start of a replay if one is needed; empty: the archive, else the topic",
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
            description="most expensive class that is accepted; an upgrade that needs more is refused",
        ),
    }

    def upgrade_op(context: OpExecutionContext) -> None:
        op_config = context.op_config
        accepted_class = UpgradeClass[op_config["accept"].upper()]
        request = UpgradeRequest(
            op_config["stream"], tuple(op_config["from_now"]), op_config["start"], accepted_class
        )
        actions.record(context, "stream upgrade", request.stream, {"accept": accepted_class.label})
        upgrade_plan = run_upgrade(request, lambda text: context.log.info("%s", text))
        context.add_output_metadata({"upgrade": MetadataValue.json(upgrade_plan.as_json())})

    return build_config_job(
        "stream_upgrade", "upgrade_stream", UPGRADE_DESCRIPTION, schema, upgrade_op, SPARK_POOL
    )


def _pipeline_field(pipelines: Sequence[str]) -> Field:
    return build_name_field("pipeline", pipelines)
