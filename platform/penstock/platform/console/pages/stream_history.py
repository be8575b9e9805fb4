"""Replays and upgrades of a stream, by the same code as `penstock stream`: planned first, then confirmed."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from penstock.platform.console.access import Caller, describe_caller
from penstock.platform.console.console_context import ConsoleContext, context_of
from penstock.platform.console.forms import read_form
from penstock.platform.console.history_runs import HistoryRun
from penstock.platform.console.history_worker import HistoryOrder, ReplayOrder, UpgradeOrder
from penstock.platform.console.live_page import LivePage, ViewModel
from penstock.platform.errors import PlatformError, UnknownColumnError
from penstock.platform.services.bounded_runs import check_run_name
from penstock.platform.services.left_out_records import parse_address
from penstock.platform.services.operator_actions import record_action
from penstock.platform.services.replay import ReplayRequest, parse_replay_start
from penstock.platform.services.stream_catalog import check_pipeline_exists, load_plan
from penstock.platform.services.upgrades import UpgradePlan, UpgradeRequest, plan_upgrade

Fields = Mapping[str, str]


def read_replay_page(request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page that plans a replay. Raises UnknownStreamError."""
    stream, fields = request.path_params["stream"], request.query_params
    replay = parse_replay(stream, fields)
    problem = _find_replay_problem(replay) if fields else ""
    return {
        "stream": stream,
        "replay": replay,
        "problem": problem,
        "is_planned": bool(fields) and not problem,
        "estimate": plan_upgrade(context.settings, context.store, UpgradeRequest(stream)).cost.replay,
        "run": _find_running(context, stream),
    }


def read_upgrade_page(request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page that shows the upgrade plan. Raises UnknownStreamError."""
    stream, fields = request.path_params["stream"], request.query_params
    planned, problem = _plan_upgrade(context, parse_upgrade(stream, fields))
    return {
        "stream": stream,
        "planned": planned,
        "digest": digest_upgrade(planned),
        "from_now": fields.get("from_now", ""),
        "problem": problem,
        "has_changed": fields.get("changed") == "yes",
        "run": _find_running(context, stream),
    }


async def start_replay(request: Request) -> Response:
    """Start the replay of a form that confirms it; otherwise show what it would do."""
    caller, stream = describe_caller(request), request.path_params["stream"]
    fields = await read_form(request, caller)
    replay = parse_replay(stream, fields)
    if fields.get("confirmed") != "yes":
        return _show_plan(request, fields)
    details = {"from": replay.start, "beside": not replay.switch}
    return await run_in_threadpool(_start, context_of(request), ReplayOrder(replay), caller, details)


async def start_upgrade(request: Request) -> Response:
    """Start the upgrade that a form confirms; show the plan again if it is another one by now."""
    caller, context = describe_caller(request), context_of(request)
    fields = await read_form(request, caller)
    upgrade = parse_upgrade(request.path_params["stream"], fields)
    planned, problem = await run_in_threadpool(_plan_upgrade, context, upgrade)
    if problem or fields.get("confirmed") != digest_upgrade(planned):
        return _show_plan(request, {**fields, **({"changed": "yes"} if fields.get("confirmed") else {})})
    order = UpgradeOrder(upgrade.stream, upgrade.from_now, planned.replay_start, planned.upgrade_class.label)
    return await run_in_threadpool(_start, context, order, caller, {"class": planned.upgrade_class.name})


def parse_replay(stream: str, fields: Fields) -> ReplayRequest:
    """Return the replay that a form describes. Raises UnknownStreamError."""
    check_pipeline_exists(stream)
    return ReplayRequest(
        stream,
        fields.get("from", "").strip() or "topic",
        switch=fields.get("results") != "beside",
        drop_earlier=fields.get("drop_earlier") == "yes",
        name=fields.get("name", "").strip(),
        left_out=tuple(fields.get("without", "").split()),
    )


def parse_upgrade(stream: str, fields: Fields) -> UpgradeRequest:
    """Return the upgrade that a form describes. Raises UnknownStreamError."""
    check_pipeline_exists(stream)
    return UpgradeRequest(stream, tuple(fields.get("from_now", "").replace(",", " ").split()))


def digest_upgrade(planned: UpgradePlan) -> str:
    """Return what a confirmation confirms: the differences and what they require, not the cost."""
    plan = planned.as_json()
    shown = [plan["upgrade_class"], plan["differences"], planned.replay_start]
    return sha256(msgspec.json.encode(shown)).hexdigest()


def _plan_upgrade(context: ConsoleContext, upgrade: UpgradeRequest) -> tuple[UpgradePlan, str]:
    """Return the upgrade plan, and what is wrong with the columns of the request."""
    try:
        return plan_upgrade(context.settings, context.store, upgrade), ""
    except UnknownColumnError as error:
        return plan_upgrade(context.settings, context.store, UpgradeRequest(upgrade.stream)), str(error)


def _find_replay_problem(replay: ReplayRequest) -> str:
    """Return what is wrong with the fields of a replay; empty if nothing is."""
    try:
        parse_replay_start(replay.start)
        if replay.name:
            check_run_name(replay.name)
        plan = load_plan(replay.stream)
        for address in replay.left_out:
            parse_address(address, plan)
    except PlatformError as error:
        return str(error)
    return ""


def _find_running(context: ConsoleContext, stream: str) -> HistoryRun | None:
    run = context.history.find(stream)
    return run if run is not None and run.exit_code is None else None


def _start(
    context: ConsoleContext, order: HistoryOrder, caller: Caller, details: Mapping[str, Any]
) -> Response:
    context.history.refuse_running(order.stream)
    record_action(
        context.settings.home,
        f"stream {order.kind}",
        order.stream,
        details,
        origin="console",
        user=caller.user,
    )
    context.history.start(order, caller.user)
    return RedirectResponse(f"/streams/{order.stream}", 303)


def _show_plan(request: Request, fields: Fields) -> Response:
    query = {name: value for name, value in fields.items() if name not in ("token", "confirmed")}
    return RedirectResponse(f"{request.url.path}?{urlencode(query)}", 303)


ROUTES = [
    LivePage("replay.html", read_replay_page).route("/streams/{stream}/replay", "replay"),
    LivePage("upgrade.html", read_upgrade_page).route("/streams/{stream}/upgrade", "upgrade"),
    Route("/streams/{stream}/replay", start_replay, methods=["POST"], name="start_replay"),
    Route("/streams/{stream}/upgrade", start_upgrade, methods=["POST"], name="start_upgrade"),
]
