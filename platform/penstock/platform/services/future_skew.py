"""The limit on future event times of inputs for which neither the pipeline nor the contract declares one."""

from dataclasses import replace

from penstock.engine.plan.sources import PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan
from penstock.ingestion.contracts import UNLIMITED, FutureSkewLimit


def apply_skew_setting(plan: Plan, limit: FutureSkewLimit) -> Plan:
    """Return the plan with this limit for each topic without a declared one. Files and panes have none."""
    return replace(plan, sources=tuple(_apply_limit(source, limit) for source in plan.sources))


def remove_skew_limits(plan: Plan) -> Plan:
    """Return the plan without any limit, for runs whose clock is simulated."""
    return replace(
        plan,
        sources=tuple(
            replace(source, watermark=replace(source.watermark, max_future_skew=None))
            for source in plan.sources
        ),
    )


def _apply_limit(source: PlanSource, limit: FutureSkewLimit) -> PlanSource:
    rule = source.watermark
    if rule.skew_origin != "unset" or not isinstance(source.origin, TopicOrigin):
        return source
    max_future_skew = None if limit == UNLIMITED else int(limit)  # a setting has a text of its own
    return replace(source, watermark=replace(rule, max_future_skew=max_future_skew, skew_origin="setting"))
