"""`penstock status`: show programs, hosts, streams and settings."""

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.command_context import load_current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.options import json_option
from penstock.platform.cli.output import format_age, format_examples, print_json, print_table
from penstock.platform.services.definition_files import find_changed_file
from penstock.platform.settings import LoadedSettings, Settings
from penstock.platform.settings.environment_variables import format_setting

if TYPE_CHECKING:
    from penstock.platform.control.reports import StreamOverview
    from penstock.platform.services.stream_hold import StreamHold
    from penstock.platform.stack.stack_view import StackView

SECTION: Section = "Local stack"

PASSWORD_PATTERN = re.compile(r"(?<=://)([^:/@]*):[^@/]*(?=@)")


@click.command(
    name="status",
    short_help="Show programs and streams, with lag and watermarks",
    epilog=format_examples("penstock status", "penstock status --settings", "penstock status --json"),
)
@json_option
@click.option("--settings", "settings_only", is_flag=True, help="Show each setting and its origin.")
def command(as_json: bool, settings_only: bool) -> int:
    """Show programs, hosts and streams. The exit code is 1 if something that should run does not."""
    loaded = load_current_settings()
    if settings_only:
        _show_settings(loaded, as_json)
        return 0
    return 0 if show_status(loaded.settings, as_json) else 1


def show_status(settings: Settings, as_json: bool = False) -> bool:
    """Print programs, hosts and streams; return whether all of them are healthy."""
    from penstock.core.clock import now_ms
    from penstock.platform.stack.stack_view import read_stack_view

    view = read_stack_view(settings, now_ms)
    if as_json:
        print_json(_to_data(view, settings))
    else:
        _print_programs(view)
        click.echo()
        _print_hosts(view)
        _print_streams(view)
    return view.is_healthy


def _print_programs(view: "StackView") -> None:
    rows = []
    for program in view.programs:
        state = program.state if program.ready or program.state != "running" else "starting"
        since = format_age(round(program.since * 1000), view.at_ms) if program.since else ""
        rows.append((program.name, state, since, program.pid, program.restarts or "", program.detail))
    columns = ("program", "state", "for", "pid", "restarts", "")
    print_table(columns, rows, empty="nothing runs; start the stack with `penstock up`")


def _print_hosts(view: "StackView") -> None:
    """Print the addresses of hosts; nothing if no host reported recently."""
    rows = [(host.host, host.address, format_age(host.started_at_ms, view.at_ms)) for host in view.hosts]
    if rows:
        print_table(("host", "metrics and health", "for"), rows)
        click.echo()


def _print_streams(view: "StackView") -> None:
    rows = [_stream_row(view, stream) for stream in view.streams]
    columns = ("stream", "desired", "state", "batch", "committed", "records", "rows", "watermark", "lag", "")
    print_table(columns, rows, empty="no stream has been started")


def _stream_row(view: "StackView", stream: "StreamOverview") -> tuple[object, ...]:
    desired = stream.desired.desired if stream.desired else ""
    reason = _describe_reason(view, stream)
    last_batch = stream.last
    if last_batch is None:
        return (stream.stream, desired, _describe_state(view, stream), "", "", "", "", "", "", reason)
    return (
        stream.stream,
        desired,
        _describe_state(view, stream),
        last_batch.batch_id,
        f"{format_age(last_batch.clock_ms, view.at_ms)} ago",
        sum(account.read for account in last_batch.accounts),
        last_batch.rows,
        f"{format_age(last_batch.watermark_ms, view.at_ms)} ago"
        if last_batch.watermark_ms is not None
        else "none",
        stream.lag_records,
        reason,
    )


def _describe_reason(view: "StackView", stream: "StreamOverview") -> str:
    """Return the reason that the host reports; for a running stream, a definition file that changed since."""
    if hold := view.standstills.get(stream.stream):
        return _describe_hold(view, stream, hold)
    health = None if _is_stopped_after_failure(stream) else stream.health
    if health is None or health.reason or not view.is_leased(stream):
        return health.reason if health else ""
    changed_file = find_changed_file(stream.stream, health.at_ms)
    if changed_file is None:
        return ""
    return f"{changed_file.name} changed since the start: `penstock stream plan-upgrade {stream.stream}`"


def _describe_hold(view: "StackView", stream: "StreamOverview", hold: "StreamHold") -> str:
    if view.is_leased(stream):
        return f"on hold for {hold.operation}; {hold.desired} afterwards"
    command_name = "start" if hold.desired == "running" else "pause"
    return (
        f"on hold since {hold.operation} was interrupted; desired before: {hold.desired}. Repeat it, or run "
        f"`penstock stream {command_name} {stream.stream}`"
    )


def _describe_state(view: "StackView", stream: "StreamOverview") -> str:
    """Return the state that the host reports; a stream without a live lease does not run, whatever it reported."""
    # Imported here, because `--help` must not load the control store.
    from penstock.engine.host.stream_state import StreamState
    from penstock.platform.services.stream_lifecycle import is_from_lease_holder

    health, desired_state = stream.health, stream.desired
    if stream.lease is not None and view.is_leased(stream):
        is_reported = health is not None and is_from_lease_holder(health, stream.lease)
        return (
            "starting"
            if desired_state is not None and desired_state.needs_host and not is_reported
            else health.state
            if health
            else StreamState.DRAINED
        )
    if health is None or health.state.is_active:
        return StreamState.STOPPED
    return (
        desired_state.desired.value
        if desired_state is not None and _is_stopped_after_failure(stream)
        else health.state
    )


def _is_stopped_after_failure(stream: "StreamOverview") -> bool:
    """Whether a stop or drain was requested after the stream failed; no host may be left to report it."""
    from penstock.platform.services.stream_lifecycle import RETRYABLE_STATES

    health, desired_state = stream.health, stream.desired
    return (
        health is not None
        and health.state in RETRYABLE_STATES
        and desired_state is not None
        and not desired_state.needs_host
    )


def _to_data(view: "StackView", settings: Settings) -> dict[str, Any]:
    return {
        "healthy": view.is_healthy,
        "ui": f"http://127.0.0.1:{settings.dagster.port}",
        "programs": [asdict(program) for program in view.programs],
        "hosts": [asdict(host) for host in view.hosts],
        "streams": [
            {
                **asdict(stream),
                "state": _describe_state(view, stream),
                "healthy": view.is_stream_healthy(stream),
                "note": _describe_reason(view, stream),
            }
            for stream in view.streams
        ],
    }


def _show_settings(loaded: LoadedSettings, as_json: bool) -> None:
    setting_texts = [
        (provenance, PASSWORD_PATTERN.sub(r"\1:***", format_setting(provenance.value)))
        for provenance in loaded.list_provenance()
    ]
    if as_json:
        print_json([{**asdict(provenance), "value": text} for provenance, text in setting_texts])
        return
    rows = [
        (provenance.name, text, provenance.source or provenance.origin, provenance.description)
        for provenance, text in setting_texts
    ]
    print_table(("setting", "value", "origin", "description"), rows)
