"""How a pipeline begins: with records of topics, several inputs united or joined, or panes of another stream."""

from collections.abc import Mapping, Sequence

from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.joins import JOIN_KINDS
from penstock.engine.plan.validation.argument_checks import require, require_one_of, require_type
from penstock.ingestion.contracts import Contract
from penstock.stream.arguments import parse_columns, parse_join_columns, parse_names
from penstock.stream.durations import Duration, to_milliseconds
from penstock.stream.input_specs import PanesInput, TopicInput
from penstock.stream.join_columns import JoinSpec
from penstock.stream.pipeline import PIPELINE_HINT, Pipeline
from penstock.stream.trigger_options import TriggerOptions

TOPIC_HINT = "Name a topic that has a contract, as in read('sensors')"


def read(
    *topics: str | Contract,
    event_time: str | None = None,
    max_out_of_orderness: Duration | None = None,
    idle_after: Duration | None = None,
    advance_when_idle: bool = False,
    max_future_skew: Duration | None = None,
    future_records: str = "quarantine",
    files: str | None = None,
    format: str = "delta",  # noqa: A002  # the word that people know for it
    tombstones: str | None = None,
) -> Pipeline:
    """Begin a pipeline: topics by the name of their contract; what is given here goes before what it says.

    With `files`, records of the contract are read from there instead of from Kafka. `tombstones` names a column
    that is true for records without a value: these have a key and Kafka's time, and are set aside without it.
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
    return Pipeline(tuple(TopicInput(topic, *options) for topic in topics))


def union(*parts: Pipeline) -> Pipeline:
    """Unite inputs, each after steps of its own; a stage takes part with its panes, as changes."""
    require(len(parts) > 1, "union", f"{len(parts)} inputs", "Name two or more")
    return Pipeline((), input_parts=tuple(as_input_part(part, "union") for part in parts))


def join(
    left: Pipeline,
    right: Pipeline,
    by: str | Sequence[str],
    how: str = "inner",
    take: Mapping[str, str] | Sequence[str] | None = None,
) -> Pipeline:
    """Join two inputs by key within windows: what is in one window, and has the same key, is put together.

    `how` is inner, left, right, full, semi or anti. `take` says which columns a row has beside the key: names and
    where they come from, as in {"page": "clicks.page"}, or fields that one input alone has; without it, all.
    """
    require_one_of(how, JOIN_KINDS, "join.how")
    column_pairs = None if take is None else parse_join_columns(take)
    key_fields = parse_names(by, "join.by")
    parts = (as_input_part(left, "join"), as_input_part(right, "join"))
    return Pipeline((), input_parts=parts, key_fields=key_fields, join_spec=JoinSpec(how, column_pairs))


def as_input_part(part: Pipeline, keyword: str) -> Pipeline:
    """Return what takes part: an input with its steps, or a stage by its panes."""
    require_type(part, Pipeline, keyword, PIPELINE_HINT)
    output_options = (part.stage_name, part.sinks or None, part.topics or None)
    stage_options = (
        part.key_fields,
        part.aggregate_outputs,
        part.window_spec,
        part.trigger_options,
        part.accumulation_mode,
        *output_options,
        part.join_spec,
    )
    if any(option is not None for option in stage_options):
        return part.then()
    fix = (
        "Name all inputs in one"
        if keyword == "union"
        else "Let a stage of its own unite its inputs, and join that"
    )
    require(
        not part.input_parts, keyword, "a union inside another" if keyword == "union" else "of a union", fix
    )
    return part


def read_panes(topic: str, *, columns: Mapping[str, str], lateness: Duration = 0) -> Pipeline:
    """Begin a pipeline over panes that another stream publishes, as `then()` does over those of its own stream.

    `columns` names their key and values, with types in Spark's words; `lateness` is that of the stage which
    publishes them, or more.
    """
    pane_columns = parse_columns(columns, "read_panes.columns")
    trigger_options = TriggerOptions(lateness=to_milliseconds(lateness, "read_panes.lateness"))
    panes = Pipeline(
        (PanesInput(topic, pane_columns),),
        window_spec=ChangelogWindows(pane_columns),
        aggregate_outputs=(),
        trigger_options=trigger_options,
        accumulation_mode="retracting",
    )
    return panes.named(f"{topic}_panes").then()
