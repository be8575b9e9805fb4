"""Top n: the elements with the greatest, or least, values of a field."""

from collections.abc import Sequence
from operator import itemgetter

import pyarrow as pa

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part
from penstock.pipelines.fold.aggregates.kinds import compared
from penstock.pipelines.fold.aggregates.lists import Entry, Lists, rank, shown, singles
from penstock.pipelines.fold.aggregates.order import Place, named, places, struct
from penstock.pipelines.fold.aggregates.setting import Setting, valid
from penstock.pipelines.fold.rows import Column, python_values
from penstock.pipelines.plan.aggregates import Output, TopN
from penstock.pipelines.plan.predicates import quoted

MOST = 100_000
"""How many Spark keeps of a group at most."""


def top(output: Output, of: TopN, setting: Setting) -> Accumulator:
    """The field of the n best elements, best first; the earlier address wins a tie."""
    name, field = output.name, of.by or of.field
    if of.n > MOST:
        raise DefinitionError(
            f"aggregate.{name}", f"the {of.n} best", f"Ask for at most {MOST}, or collect all values"
        )
    address = places("arrival", several=setting.several)
    score = Place("score", quoted(field), compared(setting.types[field], output))
    value = Place("value", quoted(of.field), setting.types[of.field])
    entry, columns = (score, *address, value), (field, *(place.column for place in address), of.field)

    merge = Lists(tuple(f"{name}_{place.name}s" for place in entry), lambda entries: best(of, entries))
    made = _best_sql(of, score, address, struct(*named(entry)))

    def part(place: Place, column: str) -> Part:
        def lift(elements: pa.Table) -> Column:
            return singles(python_values(elements.column(column)), valid(elements, field).tolist())

        return Part(f"{name}_{place.name}s", f"{made}.{place.name}", pa.list_(place.type), merge, lift)

    parts = tuple(part(place, column) for place, column in zip(entry, columns, strict=True))
    return Accumulator(name, pa.list_(value.type), parts, lambda rows: shown(rows, f"{name}_values"))


def best(of: TopN, entries: list[Entry]) -> Sequence[Entry]:
    """The n best entries of score, address and value, best first."""
    by_address = sorted(entries, key=itemgetter(slice(1, -1)))
    return sorted(by_address, key=lambda entry: rank(entry[0]), reverse=of.largest)[: of.n]


def _best_sql(of: TopN, score: Place, address: Sequence[Place], entry: str) -> str:
    """SQL for the n best of a group, which is of one topic, so that this does not count in a tie."""
    numbers = [place.column for place in address if pa.types.is_integer(place.type)]
    tie = [f"-{number}" for number in numbers] if of.largest else numbers
    by = f"CASE WHEN {score.column} IS NOT NULL THEN {struct(score.column, *tie)} END"
    return f"({'max_by' if of.largest else 'min_by'}({entry}, {by}, {of.n}))"
