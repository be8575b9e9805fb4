"""`penstock status`: what runs, what every stream last did, and where each setting came from."""

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from penstock.platform.cli.context import loaded_settings
from penstock.platform.cli.output import ago, example, print_json, print_table
from penstock.platform.settings import Loaded, Settings
from penstock.platform.settings.variables import as_text
from penstock.platform.written import changed_since

if TYPE_CHECKING:
    from penstock.platform.control.reports import StreamOverview
    from penstock.platform.stack.view import View
    from penstock.platform.standstill import Standstill

AT_WORK = ("running", "paused")
PASSWORD = re.compile(r"(?<=://)([^:/@]*):[^@/]*(?=@)")


@click.command(
    name="status", epilog=example("penstock status", "penstock status --settings", "penstock status --json")
)
@click.option("--json", "as_json", is_flag=True, help="Print for programs.")
@click.option("--settings", "settings_only", is_flag=True, help="Show each setting, and where it came from.")
def command(as_json: bool, settings_only: bool) -> int:
    """Show what runs; ends with 1 when anything that should run does not."""
    loaded = loaded_settings()
    if settings_only:
        _show_settings(loaded, as_json)
        return 0
    return 0 if show_status(loaded.settings, as_json) else 1


def show_status(settings: Settings, as_json: bool = False) -> bool:
    """Print programs and streams; returns whether all is as it should be."""
    from penstock.platform.clock import now_ms
    from penstock.platform.stack.view import look

    view = look(settings, now_ms)
    if as_json:
        print_json(_as_data(view, settings))
    else:
        _print_programs(view)
        click.echo()
        _print_hosts(view)
        _print_streams(view)
    return view.right


def _print_programs(view: "View") -> None:
    rows = []
    for program in view.programs:
        state = program.state if program.ready or program.state != "running" else "starting"
        since = ago(round(program.since * 1000), view.at_ms) if program.since else ""
        rows.append((program.name, state, since, program.pid, program.restarts or "", program.detail))
    columns = ("program", "state", "for", "pid", "restarts", "")
    print_table(columns, rows, empty="nothing runs: `penstock up` starts it")


def _print_hosts(view: "View") -> None:
    """Where hosts show what they do; nothing where none was heard of lately."""
    rows = [(host.host, host.address, ago(host.began_at_ms, view.at_ms)) for host in view.hosts]
    if rows:
        print_table(("host", "metrics and health", "for"), rows)
        click.echo()


def _print_streams(view: "View") -> None:
    rows = [_stream_row(view, stream) for stream in view.streams]
    columns = ("stream", "wanted", "state", "batch", "committed", "records", "rows", "watermark", "lag", "")
    print_table(columns, rows, empty="no stream was ever started")


def _stream_row(view: "View", stream: "StreamOverview") -> tuple[object, ...]:
    wanted = stream.desired.desired if stream.desired else ""
    reason = _reason(view, stream)
    last = stream.last
    if last is None:
        return (stream.stream, wanted, _state(view, stream), "", "", "", "", "", "", reason)
    return (
        stream.stream,
        wanted,
        _state(view, stream),
        last.batch_id,
        f"{ago(last.clock_ms, view.at_ms)} ago",
        sum(account.read for account in last.accounts),
        last.rows,
        f"{ago(last.watermark_ms, view.at_ms)} ago" if last.watermark_ms is not None else "none",
        stream.lag_records,
        reason,
    )


def _reason(view: "View", stream: "StreamOverview") -> str:
    """What its host says of it; of one that runs, whether its pipeline has been changed since it was begun."""
    if still := view.standstills.get(stream.stream):
        return _standing(view, stream, still)
    told = None if _gave_up(stream) else stream.health
    if told is None or told.reason or not view.held(stream):
        return told.reason if told else ""
    changed = changed_since(stream.stream, told.at_ms)
    if changed is None:
        return ""
    return f"{changed.name} was changed after it began: `penstock stream plan-upgrade {stream.stream}`"


def _standing(view: "View", stream: "StreamOverview", still: "Standstill") -> str:
    if view.held(stream):
        return f"stands still for {still.what}, and is to be {still.desired} afterwards"
    verb = "start" if still.desired == "running" else "pause"
    return (
        f"stands still since {still.what} was cut off, and was to be {still.desired}: do that again, or "
        f"`penstock stream {verb} {stream.stream}`"
    )


def _state(view: "View", stream: "StreamOverview") -> str:
    """What its host says; a stream that nobody holds does not run, whatever was last said of it."""
    # Loaded when asked: it takes the control store along, which `--help` does without.
    from penstock.platform.lifecycle import is_of

    told, wish = stream.health, stream.desired
    if stream.lease is not None and view.held(stream):
        begun = told is not None and is_of(told, stream.lease)
        return (
            "starting" if wish is not None and wish.held and not begun else told.state if told else "drained"
        )
    if told is None or told.state in AT_WORK:
        return "stopped"
    return wish.desired.value if wish is not None and _gave_up(stream) else told.state


def _gave_up(stream: "StreamOverview") -> bool:
    """Whether the stream failed, and somebody put it to rest after that: no host may be there to say so."""
    from penstock.platform.lifecycle import FAILED, PARKED

    told, wish = stream.health, stream.desired
    return told is not None and told.state in (FAILED, PARKED) and wish is not None and not wish.held


def _as_data(view: "View", settings: Settings) -> dict[str, Any]:
    return {
        "right": view.right,
        "ui": f"http://127.0.0.1:{settings.dagster.port}",
        "programs": [asdict(program) for program in view.programs],
        "hosts": [asdict(host) for host in view.hosts],
        "streams": [
            {
                **asdict(stream),
                "state": _state(view, stream),
                "right": view.stream_right(stream),
                "note": _reason(view, stream),
            }
            for stream in view.streams
        ],
    }


def _show_settings(loaded: Loaded, as_json: bool) -> None:
    shown = [(one, PASSWORD.sub(r"\1:***", as_text(one.value))) for one in loaded.provenance()]
    if as_json:
        print_json([{**asdict(one), "value": text} for one, text in shown])
        return
    rows = [(one.name, text, one.source or one.origin, one.description) for one, text in shown]
    print_table(("setting", "value", "from", "what it is"), rows)
