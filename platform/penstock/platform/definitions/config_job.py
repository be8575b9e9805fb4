"""Jobs with one step whose config is the job's config, so that the launchpad shows one form."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from dagster import (
    Enum,
    EnumValue,
    Field,
    JobDefinition,
    OpExecutionContext,
    config_mapping,
    graph,
    in_process_executor,
    op,
)


def build_config_job(
    name: str,
    op_name: str,
    description: str,
    schema: Mapping[str, Field],
    run_step: Callable[[OpExecutionContext], None],
    pool: str | None = None,
) -> JobDefinition:
    """Build a job that runs `run_step` in the run's process; the step reads its config from `context.op_config`.

    `pool` limits concurrent runs to the size of that Dagster pool; other runs wait in the queue.
    """

    @op(name=op_name, description=description, config_schema=dict(schema), pool=pool)
    def single_op(context: OpExecutionContext) -> None:
        run_step(context)

    @graph(name=name, description=description)
    def job_graph() -> None:
        single_op()

    @config_mapping(config_schema=dict(schema))
    def map_config(values: dict[str, object]) -> dict[str, object]:
        return {"ops": {op_name: {"config": values}}}

    return job_graph.to_job(config=map_config, executor_def=in_process_executor)


def build_name_field(kind: str, names: Sequence[str]) -> Field:
    """Return the field of a job that takes one of these names of streams or pipelines.

    Dagster caches types by their name for the process, so each list of names has a type of its own.
    """
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]
    type_name = f"{kind.capitalize()}Name_{digest}"
    return Field(Enum(type_name, [EnumValue(name) for name in names]), description=kind)
