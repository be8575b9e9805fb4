"""Starting points of a pipeline: `read`, `union`, `join` and `read_panes`."""

from collections.abc import Mapping, Sequence

from penstock.engine.definition.argument_checks import require, require_one_of, require_type
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.joins import JOIN_KINDS, JoinKind
from penstock.engine.plan.sources import FileFormat, FutureSkewPolicy
from penstock.ingestion.contracts import Contract
from penstock.stream.arguments import parse_columns, parse_join_columns, parse_names
from penstock.stream.input_specs import FutureSkew, PanesInput, TopicInput
from penstock.stream.join_columns import JoinSpec
from penstock.stream.pipeline import PIPELINE_HINT, Pipeline, definition_of
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.trigger_options import TriggerOptions

TOPIC_HINT = "Name a topic that has a contract, as in read('sensors')"


def read(
    *topics: str | Contract,
    event_time: str | None = None,
    max_out_of_orderness: Duration | None = None,
    idle_after: Duration | None = None,
    advance_when_idle: bool = False,
    max_future_skew: FutureSkew | None = None,
    future_records: FutureSkewPolicy = "quarantine",
    files: str | None = None,
    format: FileFormat = "delta",  # noqa: A002  # the usual name of this option
    tombstones: str | None = None,
) -> Pipeline:
    """Start a pipeline that reads topics, by the names of their contracts. Options override the contract.

    Args:
        topics: names of topics, or contracts.
        event_time: the field with the event time.
        max_out_of_orderness: how far the watermark is behind the newest event time of a partition. A record that is
            further behind may be late.
        idle_after: the time without records after which a partition is idle, and no longer holds the watermark
            back. Without it, the last windows of a topic without records never end.
        advance_when_idle: lets the watermark follow the clock while all partitions are idle, so that windows end
            without a new record. Records that then come with older event times are late.
        max_future_skew: how far ahead of the batch time an event time may be, or `unlimited`. The default is that
            of the contract, else the setting of the platform.
        future_records: `quarantine` records beyond max_future_skew, or `accept` them without advancing the
            watermark.
        files: a path from which records are read instead of Kafka.
        format: the format of the files.
        tombstones: the name of a column that is true for records without a value. Such a record has the Kafka key
            and the Kafka timestamp. Without this option it is quarantined.

    Example:
        read("sensors", idle_after="30 seconds")

    Not promised: an order of records between partitions.
    """
    require(len(topics) > 0, "read", "no topic", TOPIC_HINT)
    for topic in topics:
        require_type(topic, str | Contract, "read", TOPIC_HINT)
    options = (
        event_time,
        max_out_of_orderness,
        idle_after,
        advance_when_idle,
        max_future_skew,
        future_records,
        files,
        format,
        tombstones,
    )
    return Pipeline(PipelineDefinition(tuple(TopicInput(topic, *options) for topic in topics)))


def union(*parts: Pipeline) -> Pipeline:
    """Unite inputs, each after its own steps. A stage contributes its panes as changes.

    Args:
        parts: two or more pipelines, each an input with steps, or a stage.

    Example:
        union(read("cards").filter("amount > 0"), read("transfers").select("id", "at", country="to_country"))
    """
    require(len(parts) > 1, "union", f"{len(parts)} inputs", "Name two or more")
    return Pipeline(PipelineDefinition(input_parts=tuple(as_input_part(part, "union") for part in parts)))


def join(
    left: Pipeline,
    right: Pipeline,
    by: str | Sequence[str],
    how: JoinKind = "inner",
    take: Mapping[str, str] | Sequence[str] | None = None,
) -> Pipeline:
    """Join two inputs by key: elements with the same key in the same window match.

    Args:
        left: an input with steps, or a stage.
        right: the same.
        by: the field or fields that both have. Null keys never match.
        how: as in SQL. `semi` and `anti` keep left elements with and without a match.
        take: the columns besides the key: a mapping of names to fields, as in {"page": "clicks.page"}, or a list of
            fields that only one input has. The default is all columns.

    Example:
        join(read("views"), read("clicks"), by="user", how="left").window(fixed("10 minutes"))
    """
    require_one_of(how, JOIN_KINDS, "join.how")
    column_pairs = None if take is None else parse_join_columns(take)
    key_fields = parse_names(by, "join.by")
    parts = (as_input_part(left, "join"), as_input_part(right, "join"))
    return Pipeline(
        PipelineDefinition(input_parts=parts, key_fields=key_fields, join_spec=JoinSpec(how, column_pairs))
    )


def as_input_part(part: Pipeline, keyword: str) -> PipelineDefinition:
    """Return a part of a union or join: an input with its steps, or a stage read by its panes."""
    require_type(part, Pipeline, keyword, PIPELINE_HINT)
    definition = definition_of(part)
    if definition.is_stage:
        return definition_of(part.then())
    fix = (
        "List all inputs in one union"
        if keyword == "union"
        else "Unite the inputs in a stage, and join that stage"
    )
    problem = "a nested union" if keyword == "union" else "of a union"
    require(not definition.input_parts, keyword, problem, fix)
    return definition


def read_panes(topic: str, *, columns: Mapping[str, str], lateness: Duration = 0) -> Pipeline:
    """Start a pipeline over the panes that another stream publishes, as `then()` does within a stream.

    Args:
        topic: the topic of `publish`.
        columns: its key and value columns, with Spark SQL types.
        lateness: how long the publishing stage corrects its windows, or longer.

    Example:
        read_panes("minutes", columns={"device": "STRING", "readings": "BIGINT"}, lateness="1 hour")

    Not promised: that a wrong type is found before the stream starts.
    """
    pane_columns = parse_columns(columns, "read_panes.columns")
    trigger_options = TriggerOptions(lateness=to_milliseconds(lateness, "read_panes.lateness"))
    panes = PipelineDefinition(
        (PanesInput(topic, pane_columns),),
        window_spec=ChangelogWindows(pane_columns),
        aggregate_outputs=(),
        trigger_options=trigger_options,
        accumulation_mode="retracting",
    )
    return Pipeline(panes).named(f"{topic}_panes").then()
