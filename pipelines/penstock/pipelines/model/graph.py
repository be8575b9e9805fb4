"""From a definition to the plan: every pipeline that is reached becomes a stage, each after those that it reads."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model.inputs import Repeats, sources
from penstock.pipelines.model.joining import Joining, members, resolved
from penstock.pipelines.model.when import When
from penstock.pipelines.plan.check import check
from penstock.pipelines.plan.check_when import tells_the_end
from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.columns import columns_read
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.source import Source
from penstock.pipelines.plan.stage import Accumulation, Plan, Stage
from penstock.pipelines.plan.steps import Prepared, Select, Step
from penstock.pipelines.plan.timeliness import corrects_for
from penstock.pipelines.plan.windows import SameWindows

if TYPE_CHECKING:
    from penstock.pipelines.model.pipeline import Pipeline


def plan_of(name: str, pipeline: "Pipeline") -> Plan:
    """Return the checked plan."""
    ends = tuple(ends_of(pipeline))
    order = dict.fromkeys(each for end in ends for each in below(end))
    read: dict[str, Source] = {}
    stages: dict[Pipeline, Stage] = {}
    for number, each in enumerate(order, start=1):
        table = each.sinks[0].table if each.sinks else f"{name}_{number}"
        called = each.called or (name if each == ends[0] else table)
        parts = [part_of(part, each.repeats, stages, read) for part in each.parts or (each,)]
        stages[each] = stage_of(each, called, parts, stages, read)
    return check(Plan(name, tuple(read.values()), tuple(stages.values())))


@dataclass(frozen=True)
class Part:
    """One of the things that a stage reads: sources, or panes of stages, and what is done to them first."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]


def part_of(
    part: "Pipeline", repeats: Repeats | None, stages: "Mapping[Pipeline, Stage]", read: dict[str, Source]
) -> Part:
    """Return what a part of a stage reads; sources that nobody has read before are added to `read`."""
    if part.over:
        return Part(tuple(stages[bare(one)].name for one in part.over), part.steps)
    found = sources(part.inputs, part.repeats or repeats)
    for source in found:
        known = read.setdefault(source.name, source)
        fix = "Say the same of it in both places, or write two pipelines"
        require(known == source, "read", f"{source.name} is read in two ways", fix)
    return Part(tuple(source.name for source in found), part.steps)


def stage_of(
    pipeline: "Pipeline",
    name: str,
    parts: Iterable[Part],
    stages: "Mapping[Pipeline, Stage]",
    read: Mapping[str, Source],
) -> Stage:
    """Return the stage that a pipeline describes."""
    parts = list(parts)
    inputs = tuple(name for part in parts for name in part.inputs)
    twice = next((each for each in inputs if inputs.count(each) > 1), "")
    joins = pipeline.joining is not None
    fix = "Join two stages that read it" if joins else "Read it once, and tell its records apart by a field"
    word = "join" if joins else "union"
    require(not (twice and pipeline.parts), word, f"{twice} is read twice in one stage", fix)
    over_panes = any(part.over for part in (pipeline, *pipeline.parts) if part.repeats or pipeline.repeats)
    fix = "Leave it out: each pane is there once"
    require(not over_panes, "deduplicate", "given for panes", fix)
    own = tuple(Prepared(each, part.steps) for part in parts for each in part.inputs if part.steps)
    feeding = [stage for stage in stages.values() if stage.name in inputs]
    when = pipeline.when or When()
    if pipeline.where is None and not feeding:
        raise DefinitionError("window", f"not said of {name}", "Say where, as in window(fixed('1 minute'))")
    lateness = max(map(corrects_for, feeding), default=0)
    changes = any(stage.accumulation == "retracting" for stage in feeding)
    stage = Stage(
        name=name,
        inputs=inputs,
        window=pipeline.where or SameWindows(),
        aggregates=pipeline.outputs or (),
        steps=steps_of(pipeline),
        key=pipeline.keys or (),
        trigger=when.trigger,
        lateness=lateness if when.lateness is None else when.lateness,
        accumulation=cast("Accumulation", pipeline.how or ("retracting" if changes else "accumulating")),
        on_time_pane=when.on_time_pane,
        final_pane=when.final_pane or "never",
        may_finish=when.may_finish,
        sinks=pipeline.sinks,
        topics=pipeline.topics,
        prepared=own if pipeline.parts else (),
    )
    if when.final_pane is None and not tells_the_end(stage):
        stage = replace(stage, final_pane="always")
    if pipeline.joining is not None:
        return joined(stage, pipeline.joining, feeding, read)
    if pipeline.outputs is None:
        raise DefinitionError(
            "aggregate", f"not said of {name}", "Say what, as in aggregate(readings=count())"
        )
    return stage


def steps_of(pipeline: "Pipeline") -> tuple[Step, ...]:
    """Return the steps; where each record is a row, its key and the columns of the rows are all that goes on."""
    window = pipeline.where
    if not isinstance(window, Remembering) or not window.passes:
        return pipeline.steps
    names = dict.fromkeys((*(pipeline.keys or ()), *(column.name for column in window.returns)))
    return (*pipeline.steps, Select(tuple((name, name) for name in names)))


def joined(stage: Stage, joining: Joining, feeding: Iterable[Stage], read: Mapping[str, Source]) -> Stage:
    """Return the stage with the members that its join needs in the place of aggregates."""
    require(not stage.aggregates, "aggregate", "given for a join", "Aggregate in a stage after it: then()")
    fix = "Join two inputs, each of one topic or one stage"
    require(len(stage.inputs) == 2, "join", f"of {len(stage.inputs)} inputs", fix)
    known = columns_read(stage, feeding, read.values())
    join = resolved(joining, stage.inputs, known, stage.key)
    return replace(stage, join=join, aggregates=members(join))


def ends_of(pipeline: "Pipeline") -> "Iterator[Pipeline]":
    """Yield the ends of the graph, the pipeline itself first: its own other ends, and those of what it reads."""
    yield bare(pipeline)
    for tail in pipeline.tails:
        yield from ends_of(tail)
    for each in (*pipeline.over, *pipeline.parts):
        yield from tuple(ends_of(each))[1:]


def below(pipeline: "Pipeline") -> "Iterator[Pipeline]":
    """Yield the stages that come before a pipeline, and then itself; some of them several times."""
    for each in pipeline.over + tuple(one for part in pipeline.parts for one in part.over):
        yield from below(each)
    yield bare(pipeline)


def bare(pipeline: "Pipeline") -> "Pipeline":
    """Return a pipeline without the other ends that it brings along."""
    return replace(pipeline, tails=())
