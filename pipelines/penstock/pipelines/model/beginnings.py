"""How a pipeline begins: with records of topics, several inputs united or joined, or panes of another stream."""

from collections.abc import Mapping, Sequence

from penstock.ingestion.contracts import Contract
from penstock.pipelines.model.durations import Duration, milliseconds
from penstock.pipelines.model.inputs import Input, Panes
from penstock.pipelines.model.joining import Joining
from penstock.pipelines.model.pipeline import A_STAGE, Pipeline
from penstock.pipelines.model.when import When
from penstock.pipelines.model.written import columns_of, names_of, taken_of
from penstock.pipelines.plan.checks import of_kind, one_of, require
from penstock.pipelines.plan.joins import KINDS
from penstock.pipelines.plan.relaying import Relayed

A_TOPIC = "Name a topic that has a contract, as in read('sensors')"


def read(
    *topics: str | Contract,
    event_time: str | None = None,
    bound: Duration | None = None,
    idle_after: Duration | None = None,
    advance_when_idle: bool = False,
    max_ahead: Duration | None = None,
    ahead: str = "quarantine",
    files: str | None = None,
    format: str = "delta",  # noqa: A002  # the word that people know for it
    tombstones: str | None = None,
) -> Pipeline:
    """Begin a pipeline: topics by the name of their contract; what is given here goes before what it says.

    With `files`, records of the contract are read from there instead of from Kafka. `tombstones` names a column
    that is true for records without a value: these have a key and Kafka's time, and are set aside without it.
    """
    require(len(topics) > 0, "read", "no topic", A_TOPIC)
    for topic in topics:
        of_kind(topic, str | Contract, "read", A_TOPIC)
    options = (event_time, bound, idle_after, advance_when_idle, max_ahead, ahead, files, format, tombstones)
    return Pipeline(tuple(Input(topic, *options) for topic in topics))


def union(*parts: Pipeline) -> Pipeline:
    """Unite inputs, each after steps of its own; a stage takes part with its panes, as changes."""
    require(len(parts) > 1, "union", f"{len(parts)} inputs", "Name two or more")
    return Pipeline((), parts=tuple(part_in(part, "union") for part in parts))


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
    one_of(how, KINDS, "join.how")
    pairs = None if take is None else taken_of(take)
    keys = names_of(by, "join.by")
    parts = (part_in(left, "join"), part_in(right, "join"))
    return Pipeline((), parts=parts, keys=keys, joining=Joining(how, pairs))


def part_in(part: Pipeline, word: str) -> Pipeline:
    """Return what takes part: an input with its steps, or a stage by its panes."""
    of_kind(part, Pipeline, word, A_STAGE)
    ends = (part.called, part.sinks or None, part.topics or None)
    answered = (part.keys, part.outputs, part.where, part.when, part.how, *ends, part.joining)
    if any(answer is not None for answer in answered):
        return part.then()
    fix = (
        "Name all inputs in one"
        if word == "union"
        else "Let a stage of its own unite its inputs, and join that"
    )
    require(not part.parts, word, "a union inside another" if word == "union" else "of a union", fix)
    return part


def read_panes(topic: str, *, columns: Mapping[str, str], lateness: Duration = 0) -> Pipeline:
    """Begin a pipeline over panes that another stream publishes, as `then()` does over those of its own stream.

    `columns` names their key and values, with types in Spark's words; `lateness` is that of the stage which
    publishes them, or more.
    """
    wanted = columns_of(columns, "read_panes.columns")
    when = When(lateness=milliseconds(lateness, "read_panes.lateness"))
    panes = Pipeline((Panes(topic, wanted),), where=Relayed(wanted), outputs=(), when=when, how="retracting")
    return panes.named(f"{topic}_panes").then()
