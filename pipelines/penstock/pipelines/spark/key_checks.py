"""Checks of nothing but a stage's key are asked of groups of records, which have one key, not of each record.

A group whose key breaks one is no good as a whole: its records are counted as they would be one by one, set aside,
without a window, and of no weight for the watermark.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.pipelines.batch.reading import QUARANTINED
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.predicates import quoted
from penstock.pipelines.spark.checks import BREAKS, Placed, bits_of, mask_of, placed, refusing
from penstock.pipelines.spark.inputs import Sources, by_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BY_KEY = "_by_key"


def about_the_key(records: "DataFrame", stage: ReadyStage, sources: Sources) -> tuple[Placed, ...]:
    """Return the checks that ask for no field but the key's; none where a stage takes records one by one."""
    if stage.in_order:
        return ()
    keys = {field.name for field in stage.key}
    return tuple(one for one in placed(sources) if _asks_for(records, one) <= keys)


def ask_groups(
    told: "DataFrame", asked: Collection[Placed], stage: ReadyStage, sources: Sources
) -> "DataFrame":
    """Partials with what records break in `BREAKS`, as they are after these checks as well."""
    if not asked:
        return told
    broken = by_topic(sources, "_topic", lambda _, source: bits_of(asked, source))
    mask = by_topic(sources, "_topic", lambda _, source: mask_of(refusing(asked), source))
    spoilt = f"({BY_KEY} & {mask}) != 0"
    lost = ("_newest", "window_start", "window_end", *(field.name for field in stage.key))
    columns = {
        **{name: quoted(name) for name in told.columns},
        **{name: f"CASE WHEN NOT ({spoilt}) THEN {quoted(name)} END" for name in lost},
        "_set_aside": f"CASE WHEN {spoilt} THEN '{QUARANTINED}' ELSE _set_aside END",
        BREAKS: f"{BREAKS} | {BY_KEY}",
    }
    known = told.selectExpr("*", f"CASE WHEN _set_aside IS NULL THEN {broken} ELSE 0L END AS {BY_KEY}")
    return known.selectExpr(*(f"{sql} AS {quoted(name)}" for name, sql in columns.items()))


def _asks_for(records: "DataFrame", one: Placed) -> set[str]:
    """The fields of records that a check asks for."""
    asked = records.selectExpr(one.check.broken_when)
    # PySpark has no word for what an expression refers to.
    fields = asked._jdf.queryExecution().analyzed().references().iterator()  # noqa: SLF001
    found = set()
    while fields.hasNext():
        found.add(fields.next().name())
    return found
