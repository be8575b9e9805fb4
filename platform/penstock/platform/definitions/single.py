"""Jobs of one step, whose settings are the job's own: the launchpad shows them as one form."""

from collections.abc import Callable, Mapping

from dagster import (
    Field,
    JobDefinition,
    OpExecutionContext,
    config_mapping,
    graph,
    in_process_executor,
    op,
)


def single_job(
    name: str,
    step: str,
    says: str,
    schema: Mapping[str, Field],
    do: Callable[[OpExecutionContext], None],
    pool: str | None = None,
) -> JobDefinition:
    """Make a job of one step, in the run's own process; `do` finds its settings in `context.op_config`.

    Of runs of one pool only so many are begun at once as Dagster's instance says; the others wait in its queue.
    """

    @op(name=step, description=says, config_schema=dict(schema), pool=pool)
    def single(context: OpExecutionContext) -> None:
        do(context)

    @graph(name=name, description=says)
    def whole() -> None:
        single()

    @config_mapping(config_schema=dict(schema))
    def flat(values: dict[str, object]) -> dict[str, object]:
        return {"ops": {step: {"config": values}}}

    return whole.to_job(config=flat, executor_def=in_process_executor)
