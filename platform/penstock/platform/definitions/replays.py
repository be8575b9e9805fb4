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

from penstock.pipelines.upgrade.classes import Class
from penstock.platform.definitions.names import SPARK
from penstock.platform.definitions.single import single_job
from penstock.platform.replay import Order, Replayed
from penstock.platform.upgrades import Planned, UpgradeOrder

REPLAY = (
    "Run a pipeline's history again, and put the results in the place of the old ones, or leave them beside."
)
UPGRADE = (
    "Have a stream go by its pipeline as it is written now: by a restart, a rewritten state, or a replay."
)
CLASSES = (Class.COMPATIBLE, Class.MIGRATABLE, Class.REPLAY)
Tell = Callable[[str], None]


def replay_job(pipelines: Sequence[str], run: Callable[[Order, Tell], Replayed]) -> JobDefinition:
    """Make the job. A run that was killed is finished by another of the same name."""
    schema = {
        "stream": _which(pipelines),
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

    def replay(context: OpExecutionContext) -> None:
        done = run(Order(**context.op_config), lambda text: context.log.info("%s", text))
        context.add_output_metadata({"replay": MetadataValue.json(asdict(done))})

    return single_job("stream_replay", "replay_stream", REPLAY, schema, replay, SPARK)


def upgrade_job(pipelines: Sequence[str], run: Callable[[UpgradeOrder, Tell], Planned]) -> JobDefinition:
    """Make the job. What it does is what `penstock stream plan-upgrade` shows, and no more than is accepted."""
    schema = {
        "stream": _which(pipelines),
        "from_now": Field(
            Array(String), default_value=[], description="columns that may count only what comes from now on"
        ),
        "start": Field(
            String,
            default_value="",
            description="where a replay begins, where it takes one; empty for the archive, else the topic",
        ),
        "accept": Field(
            Enum("UpgradeClass", [EnumValue(each.word, description=each.says) for each in CLASSES]),
            default_value=Class.COMPATIBLE.word,
            description="the most that it may take; one that takes more is refused, and says what",
        ),
    }

    def upgrade(context: OpExecutionContext) -> None:
        given = context.op_config
        accept = Class[given["accept"].upper()]
        order = UpgradeOrder(given["stream"], tuple(given["from_now"]), given["start"], accept)
        planned = run(order, lambda text: context.log.info("%s", text))
        context.add_output_metadata({"upgrade": MetadataValue.json(planned.as_json())})

    return single_job("stream_upgrade", "upgrade_stream", UPGRADE, schema, upgrade, SPARK)


def _which(pipelines: Sequence[str]) -> Field:
    return Field(Enum("PipelineName", [EnumValue(name) for name in pipelines]), description="which pipeline")
