"""Jobs that change the desired state of a stream."""

from collections.abc import Callable, Iterator, Sequence

from dagster import Field, Float, JobDefinition, OpExecutionContext

from penstock.platform.control import ControlStore
from penstock.platform.definitions.config_job import build_config_job, build_name_field
from penstock.platform.definitions.run_actions import RunActions
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, request_state, wait_for_state


def build_lifecycle_jobs(
    streams: Sequence[str],
    open_store: Callable[[], ControlStore],
    actions: RunActions,
    removed_streams: Sequence[str] = (),
) -> Iterator[JobDefinition]:
    """Yield one job for each command: stream_start, stream_drain, and so on.

    The jobs that stop a stream also know streams whose file was removed.
    """
    for command_name, stream_command in STREAM_COMMANDS.items():
        names = [*streams, *removed_streams] if stream_command.stops else streams
        yield _build_job(command_name, names, open_store, actions)


def _build_job(
    command_name: str, streams: Sequence[str], open_store: Callable[[], ControlStore], actions: RunActions
) -> JobDefinition:
    stream_command = STREAM_COMMANDS[command_name]
    schema = {
        "stream": build_name_field("stream", streams),
        "wait_seconds": Field(
            Float, default_value=60.0, description="seconds to wait for the state; 0 does not wait"
        ),
    }

    def request_change(context: OpExecutionContext) -> None:
        stream, timeout_s = context.op_config["stream"], context.op_config["wait_seconds"]
        request = request_state(open_store(), stream, stream_command, streams)
        actions.record(context, f"stream {command_name}", stream)
        context.log.info(
            "Requested %s for %s (revision=%d)",
            stream_command.desired,
            stream,
            request.desired_state.revision,
        )
        if timeout_s > 0:
            wait_for_state(open_store(), request, timeout_s)
            context.log.info("%s is %s", stream, stream_command.desired)

    return build_config_job(
        f"stream_{command_name}", f"{command_name}_stream", stream_command.description, schema, request_change
    )
