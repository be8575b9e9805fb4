"""Decisions about quarantined records, by the same code as `penstock quarantine`: shown first, then confirmed."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from penstock.platform.console.access import Caller, describe_caller
from penstock.platform.console.console_context import ConsoleContext, context_of
from penstock.platform.console.decision_plan import DecisionPlan, FormFields, plan_decision
from penstock.platform.console.forms import read_form
from penstock.platform.console.live_page import render_form_answer
from penstock.platform.services.quarantine_decisions import DecisionAuthor, discard_records, replay_records
from penstock.quality.quarantine.replay import ReplayJudgement

MAX_FORM_BYTES = 4_000_000
"""A record of the largest size that brokers take by default, with each byte as %XX."""
SHOWN_RECORDS = 20
SEND = "send"
"""The command that sends records whose earlier replay is incomplete; it decides about none."""


async def decide(request: Request) -> Response:
    """Show what a decision would do; carry it out if the form confirms exactly that."""
    caller = describe_caller(request)
    form = await read_form(request, caller, MAX_FORM_BYTES)
    return await run_in_threadpool(_answer, request, form, caller)


def _answer(request: Request, form: FormFields, caller: Caller) -> Response:
    context, topic = context_of(request), request.path_params["topic"]
    author = DecisionAuthor(form.get("why", "").strip(), "console", caller.user)
    if form.get("command") == SEND:
        return _send(context, topic, author)
    context.quarantine.forget(topic)
    quarantine, reading = context.quarantine.open(topic), context.quarantine.read(topic)
    plan = plan_decision(quarantine, reading.statuses, form)
    confirmed = form.get("confirmed", "")
    if plan.decided and confirmed == plan.digest:
        return _carry_out(context, topic, plan, author)
    model = {
        "topic": topic,
        "plan": plan,
        "selection": {name: form[name] for name in ("address", "reason", "origin", "value") if name in form},
        "shown": SHOWN_RECORDS,
        "has_changed": bool(confirmed),
        "why": author.why,
        "problem": reading.problem,
    }
    return render_form_answer(request, "quarantine_decision.html", model)


def _carry_out(context: ConsoleContext, topic: str, plan: DecisionPlan, author: DecisionAuthor) -> Response:
    home, quarantine = context.settings.home, context.quarantine.open(topic)
    try:
        if plan.judgement is None:
            return _show_topic(topic, f"decided={discard_records(home, quarantine, plan.records, author)}")
        result = replay_records(home, quarantine, plan.judgement, author)
        return _show_topic(topic, f"decided={result.decided_count}&sent={result.sent_count}")
    finally:
        context.quarantine.forget(topic)


def _send(context: ConsoleContext, topic: str, author: DecisionAuthor) -> Response:
    try:
        quarantine = context.quarantine.open(topic)
        result = replay_records(context.settings.home, quarantine, ReplayJudgement((), ()), author)
        return _show_topic(topic, f"sent={result.sent_count}")
    finally:
        context.quarantine.forget(topic)


def _show_topic(topic: str, outcome: str) -> Response:
    return RedirectResponse(f"/quarantine/{topic}?{outcome}", 303)


ROUTES = [Route("/quarantine/{topic}/decision", decide, methods=["POST"], name="quarantine_decision")]
