"""Keeps a stream without a limit on future event times until it is upgraded.

Penstock 0.1.0 had no limit by default. The results of its streams must not change because a newer version starts
them: a limit that neither the pipeline nor a contract declares applies to a stream without one only after
`penstock stream upgrade`.
"""

import logging
from dataclasses import replace
from pathlib import Path

from penstock.core.files import write_atomically
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan
from penstock.engine.stream_folders import ACCEPTED_SKEW_FILE
from penstock.engine.upgrade.stored_plan import read_stored_plan

log = logging.getLogger(__name__)


def keep_stored_skew(directory: Path, plan: Plan) -> Plan:
    """Return the plan that a stream runs by: without limits of the settings that its state does not follow yet."""
    stored_plan = read_stored_plan(directory)
    if stored_plan is None or (directory / ACCEPTED_SKEW_FILE).exists():
        return plan
    stored_sources = {source.name: source for source in stored_plan.sources}
    return replace(
        plan,
        sources=tuple(_keep_unlimited(source, stored_sources.get(source.name)) for source in plan.sources),
    )


def accept_skew(directory: Path) -> None:
    """Let the limit of the settings apply to a stream from its next start."""
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(directory / ACCEPTED_SKEW_FILE, "")


def _keep_unlimited(source: PlanSource, stored_source: PlanSource | None) -> PlanSource:
    rule = source.watermark
    if stored_source is None or rule.skew_origin != "setting":
        return source
    if stored_source.watermark.max_future_skew is not None or rule.max_future_skew is None:
        return source
    log.warning(
        "No limit on future event times; the stream was started without one (input=%s). "
        "`penstock stream upgrade` sets max_future_skew",
        source.name,
    )
    return replace(source, watermark=replace(rule, max_future_skew=None))
