"""`penstock status`: show programs, hosts, streams and settings."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import msgspec

from penstock.core.names import explain_unknown_name
from penstock.platform.cli.command_context import load_current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.live_view import print_view, watch_documents, watch_option, watch_view
from penstock.platform.cli.options import complete_names, json_option, list_streams
from penstock.platform.cli.output import (
    format_age,
    format_examples,
    print_json,
    print_json_line,
    print_table,
)
from penstock.platform.cli.status_files import find_invalid_files, render_invalid_files
from penstock.platform.cli.text_table import TableColumn, render_table, shorten, wrap_text
from penstock.platform.errors import UnknownStreamError
from penstock.platform.settings import LoadedSettings, Settings
from penstock.platform.settings.environment_variables import format_setting
from penstock.platform.settings.naming import show_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.platform.control.reports import StreamOverview
    from penstock.platform.services.definition_problems import DefinitionProblem
    from penstock.platform.stack.stack_view import StackView

SECTION: Section = "Local stack"

PROGRAM_COLUMNS = (
    TableColumn("program"),
    TableColumn("state"),
    TableColumn("for", is_number=True),
    TableColumn("pid", is_number=True, rank=2),
    TableColumn("restarts", is_number=True, rank=1),
    TableColumn(""),
)
HOST_COLUMNS = (
    TableColumn("host"),
    TableColumn("metrics, health and pages"),
    TableColumn("for", is_number=True),
)


@click.command(
    name="status",
    short_help="Show programs and streams, with rates and lag",
    epilog=format_examples(
        "penstock status",
        "penstock status --watch",
        "penstock status sensor_minute",
        "penstock status --settings",
    ),
)
@click.argument("stream", required=False, shell_complete=complete_names(list_streams))
@watch_option
@json_option
@click.option("--settings", "settings_only", is_flag=True, help="Show each setting and its origin.")
def command(stream: str | None, watch: bool, as_json: bool, settings_only: bool) -> int:
    """Show programs, hosts and streams, or everything about one stream.

    Rates, shares and batch times are those of the last minute. The exit code is 1 if something that should run does
    not, if a stream fails and is retried, or if a file of a contract, pipeline or suite is invalid; with --watch it
    is 0.
    """
    loaded = load_current_settings()
    if settings_only:
        if watch or stream:
            raise click.UsageError("--settings shows all settings once; leave out the stream and --watch")
        _show_settings(loaded, as_json)
        return 0
    if watch:
        _watch_status(loaded.settings, stream, as_json)
        return 0
    return 0 if show_status(loaded.settings, stream, as_json=as_json) else 1


def show_status(settings: Settings, stream: str | None = None, *, as_json: bool = False) -> bool:
    """Print programs, hosts and streams, or one stream; return whether all of it is healthy.

    All is healthy only while no definition file is invalid.
    """
    view = _read_view(settings)
    shown_streams = _select_streams(view, stream)
    if as_json:
        data = _to_data(view, shown_streams, settings)
        print_json(data)
        return all(entry["healthy"] for entry in data["streams"]) if stream else bool(data["healthy"])
    problems = () if stream else find_invalid_files()
    print_view(lambda width: _render(view, shown_streams, stream, problems, width))
    return all(map(view.is_stream_healthy, shown_streams)) if stream else view.is_healthy and not problems


def _watch_status(settings: Settings, stream: str | None, as_json: bool) -> None:
    _select_streams(
        _read_view(settings), stream
    )  # an unknown name ends the command before the first snapshot

    def render(width: int | None) -> list[str]:
        view = _read_view(settings)
        problems = () if stream else find_invalid_files()
        return _render(view, _select_streams(view, stream), stream, problems, width)

    def print_document() -> None:
        view = _read_view(settings)
        print_json_line(_to_data(view, _select_streams(view, stream), settings))

    if as_json:
        watch_documents(print_document)
    else:
        watch_view(render)


def _read_view(settings: Settings) -> "StackView":
    from penstock.core.clock import now_ms
    from penstock.platform.stack.stack_view import read_stack_view

    return read_stack_view(settings, now_ms)


def _select_streams(view: "StackView", name: str | None) -> "Sequence[StreamOverview]":
    """Return the streams to show: all, or the one of a name. Raises UnknownStreamError if it was never started."""
    if name is None:
        return view.streams
    if selected := [stream for stream in view.streams if stream.stream == name]:
        return selected
    if name in list_streams():
        raise UnknownStreamError(f"{name} was never started. Start it with `penstock stream start {name}`")
    started_names = [stream.stream for stream in view.streams]
    raise UnknownStreamError(explain_unknown_name("stream", name, started_names, "penstock status"))


def _render(
    view: "StackView",
    streams: "Sequence[StreamOverview]",
    name: str | None,
    problems: "Sequence[DefinitionProblem]",
    width: int | None,
) -> list[str]:
    if name is not None:
        return [line for stream in streams for line in _render_stream_page(view, stream)]
    streams_and_hosts = [*_render_hosts(view, width), *_render_streams(view, width)]
    return [*_render_programs(view, width), "", *streams_and_hosts, *render_invalid_files(problems, width)]


def _render_programs(view: "StackView", width: int | None) -> list[str]:
    rows = []
    for program in view.programs:
        state = program.state if program.ready or program.state != "running" else "starting"
        since = format_age(round(program.since * 1000), view.at_ms) if program.since else ""
        pid = "" if program.pid is None else str(program.pid)
        rows.append((program.name, state, since, pid, str(program.restarts or ""), program.detail))
    if not rows:
        return ["nothing runs; start the stack with `penstock up`"]
    return render_table(PROGRAM_COLUMNS, rows, width)


def _render_hosts(view: "StackView", width: int | None) -> list[str]:
    """Return the addresses of hosts; nothing if no host reported recently."""
    rows = [
        (host.host, f"http://{host.address}/", format_age(host.started_at_ms, view.at_ms))
        for host in view.hosts
    ]
    return [*render_table(HOST_COLUMNS, rows, width), ""] if rows else []


def _render_streams(view: "StackView", width: int | None) -> list[str]:
    from penstock.platform.cli.stream_figures import LEGEND, STREAM_COLUMNS, StreamFigures
    from penstock.platform.stack.stream_condition import describe_note

    if not view.streams:
        return ["no stream has been started"]
    rows = [StreamFigures.of_view(view, stream).as_row() for stream in view.streams]
    notes = [f"{stream.stream}: {note}" for stream in view.streams if (note := describe_note(view, stream))]
    lines = [shorten(note, width) for note in notes]
    if any(line != note for line, note in zip(lines, notes, strict=True)):
        lines.append("`penstock status NAME` shows a whole note.")
    legend = [click.style(line, dim=True) for line in wrap_text(LEGEND, width)]
    return [*render_table(STREAM_COLUMNS, rows, width), *lines, *legend]


def _render_stream_page(view: "StackView", stream: "StreamOverview") -> list[str]:
    """Return everything about a stream, with the whole reason of a failure."""
    from penstock.platform.cli.stream_figures import StreamFigures
    from penstock.platform.stack.stream_condition import describe_note

    figures = [("stream", stream.stream), *StreamFigures.of_view(view, stream).describe()]
    name_width = max(len(name) for name, _ in figures)
    lines = [f"{name:<{name_width}}  {text}" for name, text in figures]
    note = describe_note(view, stream)
    return [*lines, "", *note.splitlines()] if note else lines


def _to_data(view: "StackView", streams: "Sequence[StreamOverview]", settings: Settings) -> dict[str, Any]:
    from penstock.platform.cli.stream_figures import StreamFigures
    from penstock.platform.stack.stream_condition import describe_note, describe_removed_file, describe_state

    problems = find_invalid_files()
    return {
        "healthy": view.is_healthy and not problems,
        "invalid_files": msgspec.to_builtins(problems),
        "ui": f"http://127.0.0.1:{settings.dagster.port}",
        "programs": [asdict(program) for program in view.programs],
        "hosts": [asdict(host) for host in view.hosts],
        "streams": [
            {
                **asdict(stream),
                "state": describe_state(view, stream),
                "healthy": view.is_stream_healthy(stream),
                "file_removed": bool(describe_removed_file(stream.stream)),
                "note": describe_note(view, stream),
                "consumer_lag_records": stream.lag_records,
                "watermark_delay_seconds": _delay_seconds(
                    StreamFigures.of_view(view, stream).watermark_delay_ms
                ),
                "rates": asdict(view.rates[stream.stream]) if stream.stream in view.rates else None,
            }
            for stream in streams
        ],
    }


def _delay_seconds(delay_ms: int | None) -> float | None:
    return None if delay_ms is None else delay_ms / 1000


def _show_settings(loaded: LoadedSettings, as_json: bool) -> None:
    setting_texts = [
        (provenance, show_setting(provenance.name, format_setting(provenance.value)))
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
