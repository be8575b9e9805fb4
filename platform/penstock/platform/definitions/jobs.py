"""Jobs that say what should become of a stream; the launchpad shows their settings as a form."""

from collections.abc import Callable, Iterator, Sequence

from dagster import (
    Enum,
    EnumValue,
    Field,
    Float,
    JobDefinition,
    OpExecutionContext,
    config_mapping,
    graph,
    in_process_executor,
    op,
)

from penstock.pipelines.host.control import Desired
from penstock.platform.control import ControlStore
from penstock.platform.lifecycle import ask, wait_for

VERBS = {
    "start": (Desired.RUNNING, "Have a stream run; one that runs is left alone."),
    "drain": (Desired.DRAINED, "Let a stream finish its batch, commit it, and stop."),
    "stop": (Desired.STOPPED, "Stop a stream now; a batch in flight is repeated whole at the next start."),
}


def stream_jobs(streams: Sequence[str], store: Callable[[], ControlStore]) -> Iterator[JobDefinition]:
    """One job a verb: stream_start, stream_drain, stream_stop."""
    for verb in VERBS:
        yield _job(verb, streams, store)


def _job(verb: str, streams: Sequence[str], store: Callable[[], ControlStore]) -> JobDefinition:
    desired, description = VERBS[verb]
    schema = {
        "stream": Field(
            Enum("StreamName", [EnumValue(name) for name in streams]), description="which stream"
        ),
        "wait_seconds": Field(
            Float, default_value=60.0, description="how long to wait until it is so; 0 only says it"
        ),
    }

    @op(name=f"{verb}_stream", description=description, config_schema=schema)
    def change(context: OpExecutionContext) -> None:
        stream, wait = context.op_config["stream"], context.op_config["wait_seconds"]
        state = ask(store(), stream, desired, streams)
        context.log.info("%s is to be %s (revision %d)", stream, desired, state.revision)
        if wait > 0:
            wait_for(store(), stream, desired, wait)
            context.log.info("%s is %s", stream, desired)

    @graph(name=f"stream_{verb}", description=description)
    def whole() -> None:
        change()

    @config_mapping(config_schema=schema)
    def flat(values: dict[str, object]) -> dict[str, object]:
        return {"ops": {f"{verb}_stream": {"config": values}}}

    return whole.to_job(config=flat, executor_def=in_process_executor)
