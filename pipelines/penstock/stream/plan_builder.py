"""Conversion of a definition to a plan: each pipeline of the graph becomes a stage, after its upstream stages."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.engine.definition.argument_checks import require
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.columns import stage_input_columns
from penstock.engine.plan.correction_time import correction_time_ms
from penstock.engine.plan.nested_columns import collect_paths
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import InputSteps, SelectStep, Step
from penstock.engine.plan.validation.pane_timing import has_final_pane
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.windows.same_windows import SameWindows
from penstock.stream.input_specs import DeduplicationSpec, build_sources
from penstock.stream.join_columns import JoinSpec, join_member_outputs, resolve_join
from penstock.stream.pipeline_definition import PipelineDefinition
from penstock.stream.trigger_options import TriggerOptions


def build_plan(name: str, pipeline: PipelineDefinition) -> Plan:
    """Return the validated plan."""
    paths = collect_paths(pipeline)
    sources_by_name: dict[str, PlanSource] = {}
    stages: dict[PipelineDefinition, Stage] = {}
    for stage_pipeline, stage_name in name_stages(name, pipeline).items():
        stage_inputs = [
            resolve_inputs(part, stage_pipeline.deduplication_spec, stages, sources_by_name, paths)
            for part in stage_pipeline.input_parts or (stage_pipeline,)
        ]
        stages[stage_pipeline] = build_stage(
            stage_pipeline, stage_name, stage_inputs, stages, sources_by_name
        )
    return validate_plan(Plan(name, tuple(sources_by_name.values()), tuple(stages.values())))


def name_stages(name: str, pipeline: PipelineDefinition) -> dict[PipelineDefinition, str]:
    """Return the stages of the graph with their names, each after its upstream stages."""
    outputs = tuple(iter_outputs(pipeline))
    stage_order = dict.fromkeys(
        stage_pipeline for output_pipeline in outputs for stage_pipeline in iter_upstream(output_pipeline)
    )
    names: dict[PipelineDefinition, str] = {}
    for number, stage_pipeline in enumerate(stage_order, start=1):
        table = stage_pipeline.sinks[0].table if stage_pipeline.sinks else f"{name}_{number}"
        names[stage_pipeline] = stage_pipeline.stage_name or (name if stage_pipeline == outputs[0] else table)
    return names


@dataclass(frozen=True)
class StageInputs:
    """A part of the input of a stage: names of sources or upstream stages, and the steps over them."""

    inputs: tuple[str, ...]
    steps: tuple[Step, ...]


def resolve_inputs(
    part: PipelineDefinition,
    deduplication: DeduplicationSpec | None,
    stages: Mapping[PipelineDefinition, Stage],
    sources_by_name: dict[str, PlanSource],
    paths: Collection[str],
) -> StageInputs:
    """Return the inputs of a part of a stage, and add its new sources to `sources_by_name`.

    A source has a column for each of `paths` that is a member of one of its structs.
    """
    if part.upstream:
        return StageInputs(
            tuple(stages[upstream_pipeline.without_siblings()].name for upstream_pipeline in part.upstream),
            part.steps,
        )
    part_sources = build_sources(part.inputs, part.deduplication_spec or deduplication, paths)
    for source in part_sources:
        known_source = sources_by_name.setdefault(source.name, source)
        fix = "Use the same options in both places, or write two pipelines"
        require(known_source == source, "read", f"{source.name} is read with different options", fix)
    return StageInputs(tuple(source.name for source in part_sources), part.steps)


def build_stage(
    pipeline: PipelineDefinition,
    name: str,
    parts: Iterable[StageInputs],
    stages: Mapping[PipelineDefinition, Stage],
    sources_by_name: Mapping[str, PlanSource],
) -> Stage:
    """Return the stage that a pipeline describes."""
    parts = list(parts)
    inputs = tuple(name for part in parts for name in part.inputs)
    duplicate_input = next((input_name for input_name in inputs if inputs.count(input_name) > 1), "")
    is_join = pipeline.join_spec is not None
    fix = (
        "Join two stages that read it" if is_join else "Read it once, and distinguish its records by a field"
    )
    keyword = "join" if is_join else "union"
    require(
        not (duplicate_input and pipeline.input_parts),
        keyword,
        f"{duplicate_input} is read twice in one stage",
        fix,
    )
    deduplicates_panes = any(
        part.upstream
        for part in (pipeline, *pipeline.input_parts)
        if part.deduplication_spec or pipeline.deduplication_spec
    )
    fix = "Remove it: each pane is read exactly once"
    require(not deduplicates_panes, "deduplicate", "set for panes", fix)
    input_steps = tuple(
        InputSteps(input_name, part.steps) for part in parts for input_name in part.inputs if part.steps
    )
    upstream_stages = [stage for stage in stages.values() if stage.name in inputs]
    trigger_options = pipeline.trigger_options or TriggerOptions()
    if pipeline.window_spec is None and not upstream_stages:
        raise DefinitionError("window", f"{name} has no window", "Add one, as in window(fixed('1 minute'))")
    lateness = max(map(correction_time_ms, upstream_stages), default=0)
    reads_retractions = any(stage.accumulation == "retracting" for stage in upstream_stages)
    stage = Stage(
        name=name,
        inputs=inputs,
        window=pipeline.window_spec or SameWindows(),
        aggregates=pipeline.aggregate_outputs or (),
        steps=collect_steps(pipeline),
        key=pipeline.key_fields or (),
        trigger=trigger_options.trigger,
        lateness=lateness if trigger_options.lateness is None else trigger_options.lateness,
        accumulation=pipeline.accumulation_mode or ("retracting" if reads_retractions else "accumulating"),
        on_time_pane=trigger_options.on_time_pane,
        final_pane=trigger_options.final_pane or "never",
        may_finish=trigger_options.may_finish,
        sinks=pipeline.sinks,
        topics=pipeline.topics,
        input_steps=input_steps if pipeline.input_parts else (),
    )
    if trigger_options.final_pane is None and not has_final_pane(stage):
        stage = replace(stage, final_pane="always")
    if pipeline.join_spec is not None:
        return resolve_join_stage(stage, pipeline.join_spec, upstream_stages, sources_by_name)
    if pipeline.aggregate_outputs is None:
        raise DefinitionError(
            "aggregate", f"{name} computes nothing", "Add aggregates, as in aggregate(readings=count())"
        )
    return stage


def collect_steps(pipeline: PipelineDefinition) -> tuple[Step, ...]:
    """Return the steps of a stage. For `rows()`, a last step selects the key and the declared columns."""
    window = pipeline.window_spec
    if not isinstance(window, StatefulFunction) or not window.is_pass_through:
        return pipeline.steps
    names = dict.fromkeys((*(pipeline.key_fields or ()), *(column.name for column in window.returns)))
    return (*pipeline.steps, SelectStep(tuple((name, name) for name in names)))


def resolve_join_stage(
    stage: Stage,
    joining: JoinSpec,
    upstream_stages: Iterable[Stage],
    sources_by_name: Mapping[str, PlanSource],
) -> Stage:
    """Return the stage with its join, and with the elements that the join needs as aggregates."""
    require(not stage.aggregates, "aggregate", "set for a join", "Aggregate in the next stage: then()")
    fix = "Join two inputs, each of one topic or one stage"
    require(len(stage.inputs) == 2, "join", f"of {len(stage.inputs)} inputs", fix)
    input_columns = stage_input_columns(stage, upstream_stages, sources_by_name.values())
    join = resolve_join(joining, stage.inputs, input_columns, stage.key)
    return replace(stage, join=join, aggregates=join_member_outputs(join))


def iter_outputs(pipeline: PipelineDefinition) -> Iterator[PipelineDefinition]:
    """Yield the outputs of the graph: the pipeline first, then its siblings and those of its inputs."""
    yield pipeline.without_siblings()
    for sibling in pipeline.siblings:
        yield from iter_outputs(sibling)
    for input_pipeline in (*pipeline.upstream, *pipeline.input_parts):
        yield from tuple(iter_outputs(input_pipeline))[1:]


def iter_upstream(pipeline: PipelineDefinition) -> Iterator[PipelineDefinition]:
    """Yield the upstream stages of a pipeline and then itself. Some stages are yielded several times."""
    for upstream_pipeline in pipeline.upstream + tuple(
        part_upstream for part in pipeline.input_parts for part_upstream in part.upstream
    ):
        yield from iter_upstream(upstream_pipeline)
    yield pipeline.without_siblings()
