"""The page of a stream: its panes as they appear, its charts, its account, its plan and its history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from starlette.requests import Request

from penstock.core.names import explain_unknown_name
from penstock.engine.archive.archive_names import find_archived_topic
from penstock.engine.errors import DefinitionError
from penstock.engine.explain import Explanation, explain
from penstock.engine.host.control import BatchRecord
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.physical_plan import describe_physical_plan
from penstock.pipelines import catalog
from penstock.platform.console.account_flow import lay_out_flow
from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.console.live_page import LivePage, ViewModel, is_update
from penstock.platform.console.pages.stream_state import list_commands
from penstock.platform.console.pane_picture import PanePicture, draw_panes
from penstock.platform.console.pane_reading import PaneReading, list_drawn_stages, read_panes
from penstock.platform.console.partition_lag import MAX_PARTITIONS, PartitionLag, list_partition_lags
from penstock.platform.console.recent_errors import read_recent_errors
from penstock.platform.console.stack_reader import StackReading
from penstock.platform.console.stream_table import build_stream_rows
from penstock.platform.console.stream_view import draw_charts, list_fates
from penstock.platform.control.batch_history import read_batches_since
from penstock.platform.control.reports import StreamOverview
from penstock.platform.errors import UnknownStreamError
from penstock.platform.services.operator_actions import OperatorAction, read_actions
from penstock.platform.services.plan_parallelism import derive_parallelism
from penstock.platform.services.stream_catalog import load_plan

SPANS_MIN = (2, 5, 15, 60, 360)
DEFAULT_SPAN_MIN = 5
MAX_PANE_SPAN = timedelta(minutes=60)
MAX_ACTIONS = 12


@dataclass(frozen=True)
class StreamSelection:
    """What a request asks to see of a stream."""

    span_min: int
    stage: str
    key: str

    @classmethod
    def of_request(cls, request: Request) -> "StreamSelection":
        """Return the selection; what is not known is replaced by the default."""
        text = request.query_params.get("span", "")
        span = int(text) if text.isdecimal() and int(text) in SPANS_MIN else DEFAULT_SPAN_MIN
        return cls(span, request.query_params.get("stage", ""), request.query_params.get("key", ""))


def read_stream_page(request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page. Raises UnknownStreamError for a stream that there is not."""
    name = request.path_params["stream"]
    reading = context.stack.read()
    rows = {row.name: row for row in build_stream_rows(reading)}
    if name not in rows:
        raise UnknownStreamError(explain_unknown_name("stream", name, list(rows), "the overview"))
    selection, now_ms = StreamSelection.of_request(request), reading.view.at_ms
    start_ms = now_ms - selection.span_min * 60_000
    batches = read_batches_since(context.store, name, start_ms)
    plan, plan_error = _load_plan(name)
    records_read, fates = list_fates(batches)
    overview = next((each for each in reading.view.streams if each.stream == name), None)
    return {
        "stream": rows[name],
        "overview": overview,
        "holder": _find_holder(reading, overview),
        "description": "" if find_archived_topic(name) else _read_description(name),
        "ends": context.ends.read(name),
        "selection": selection,
        "spans": SPANS_MIN,
        "plan": plan,
        "plan_error": plan_error,
        "explanation": None if plan is None else _explain(plan, context),
        "charts": list(draw_charts(batches, start_ms, now_ms)) if batches else [],
        "batches": len(batches),
        "records_read": records_read,
        "fates": fates,
        "flow": lay_out_flow(records_read, fates),
        "partitions": _list_partitions(context, overview, batches, is_update=is_update(request)),
        "max_partitions": MAX_PARTITIONS,
        "commands": list_commands(rows[name].state),
        "has_history": plan is not None,
        "run": context.history.find(name),
        "errors": read_recent_errors(context.settings.home / "logs", name),
        "actions": _list_actions(context, name),
        **_read_panes(context, plan, batches, selection, now_ms, is_update=is_update(request)),
    }


def _read_panes(
    context: ConsoleContext,
    plan: Plan | None,
    batches: Sequence[BatchRecord],
    selection: StreamSelection,
    now_ms: int,
    *,
    is_update: bool,
) -> ViewModel:
    """Return the stages with panes, and the picture of the selected one."""
    stages = [] if plan is None else list_drawn_stages(plan)
    names = [stage.name for stage in stages]
    chosen = next(
        (stage for stage in stages if stage.name == selection.stage), stages[-1] if stages else None
    )
    picture: PanePicture | None = None
    reading: PaneReading | None = None
    if plan is not None and chosen is not None:
        span_ms = min(selection.span_min * 60_000, MAX_PANE_SPAN // timedelta(milliseconds=1))
        interval = now_ms - span_ms, now_ms
        # The first view does not wait for the broker; the updates that follow have the records.
        read_records = context.records.read if is_update else context.records.list_known
        records = [
            record
            for source in plan.sources_of(chosen)
            if isinstance(source.origin, TopicOrigin)
            for record in read_records(source.origin.topic, span_ms)
        ]
        reading = read_panes(context.settings.warehouse_path, plan, chosen, batches, interval, records)
        picture = None if reading is None else draw_panes(reading, selection.key)
    return {
        "stages": names,
        "stage": "" if chosen is None else chosen.name,
        "picture": picture,
        "pane_reading": reading,
    }


def _list_partitions(
    context: ConsoleContext,
    overview: StreamOverview | None,
    batches: Sequence[BatchRecord],
    *,
    is_update: bool,
) -> list[PartitionLag]:
    """Return the partitions that the newest batch read. The first view does not wait for the broker."""
    if overview is None or overview.last is None:
        return []
    accounts, reader = overview.last.accounts, context.end_offsets
    ends = reader.read(overview.stream, accounts) if is_update else reader.list_known(overview.stream)
    return list_partition_lags(accounts, ends, batches)


def _load_plan(name: str) -> tuple[Plan | None, str]:
    """Return the plan of a pipeline, or why there is none."""
    if find_archived_topic(name) is not None or name not in catalog.pipeline_names():
        return None, ""
    try:
        return load_plan(name), ""
    except DefinitionError as error:
        return None, str(error)


def _read_description(name: str) -> str:
    return catalog.read_description(name) if name in catalog.pipeline_names() else ""


def _explain(plan: Plan, context: ConsoleContext) -> Explanation:
    return explain(plan, describe_physical_plan(plan, derive_parallelism(plan, context.settings)))


def _find_holder(reading: StackReading, overview: StreamOverview | None) -> str:
    """Return the host that runs a stream; empty if none does."""
    lease = overview.lease if overview is not None and reading.view.is_leased(overview) else None
    return "" if lease is None else f"{lease.holder} (epoch {lease.epoch})"


def _list_actions(context: ConsoleContext, stream: str) -> list[OperatorAction]:
    """Return the newest actions on a stream, the newest first."""
    own = [action for action in read_actions(context.settings.home) if action.target == stream]
    return own[::-1][:MAX_ACTIONS]


ROUTES = [LivePage("stream.html", read_stream_page).route("/streams/{stream}", "stream")]
