"""The differences of all source stages of a stream."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from penstock.engine.plan.stages import Stage
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.verdict import AuditDifference


def find_in_source_stages(
    scope: AuditScope, find_differences: Callable[[Stage], Iterator[AuditDifference]]
) -> Iterator[AuditDifference]:
    """Yield the differences of each source stage. Except for the first stage, the location names the stage."""
    for stage in scope.plan.source_stages:
        for difference in find_differences(stage):
            yield (
                difference
                if stage == scope.plan.first_source_stage
                else replace(difference, location=f"{stage.name}: {difference.location}")
            )
