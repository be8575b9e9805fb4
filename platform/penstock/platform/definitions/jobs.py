"""Jobs that say what should become of a stream; the launchpad shows their settings as a form."""

from collections.abc import Callable, Iterator, Sequence

from dagster import Enum, EnumValue, Field, Float, JobDefinition, OpExecutionContext

from penstock.platform.control import ControlStore
from penstock.platform.definitions.single import single_job
from penstock.platform.lifecycle import VERBS, ask, wait_for


def stream_jobs(streams: Sequence[str], store: Callable[[], ControlStore]) -> Iterator[JobDefinition]:
    """One job a verb: stream_start, stream_drain, and so on."""
    for word in VERBS:
        yield _job(word, streams, store)


def _job(word: str, streams: Sequence[str], store: Callable[[], ControlStore]) -> JobDefinition:
    verb = VERBS[word]
    schema = {
        "stream": Field(
            Enum("StreamName", [EnumValue(name) for name in streams]), description="which stream"
        ),
        "wait_seconds": Field(
            Float, default_value=60.0, description="how long to wait until it is so; 0 only says it"
        ),
    }

    def change(context: OpExecutionContext) -> None:
        stream, wait = context.op_config["stream"], context.op_config["wait_seconds"]
        asked = ask(store(), stream, verb, streams)
        context.log.info("%s is to be %s (revision %d)", stream, verb.desired, asked.state.revision)
        if wait > 0:
            wait_for(store(), asked, wait)
            context.log.info("%s is %s", stream, verb.desired)

    return single_job(f"stream_{word}", f"{word}_stream", verb.says, schema, change)
