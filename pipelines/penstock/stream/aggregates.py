"""Aggregates of the public API. Names of Python built-ins have a trailing underscore."""

from typing import TYPE_CHECKING, Any

from penstock.engine.aggregates.collect import collect
from penstock.engine.aggregates.count import count
from penstock.engine.aggregates.custom import combine
from penstock.engine.aggregates.distinct import distinct
from penstock.engine.aggregates.first import first
from penstock.engine.aggregates.last import last
from penstock.engine.aggregates.max import max_
from penstock.engine.aggregates.mean import mean
from penstock.engine.aggregates.min import min_
from penstock.engine.aggregates.of_input import of
from penstock.engine.aggregates.quantiles import quantiles
from penstock.engine.aggregates.sum import sum_
from penstock.engine.aggregates.top_n import top
from penstock.stream.keyword_registries import AGGREGATE_KEYWORDS, find_added_keyword

__all__ = [
    "collect",
    "combine",
    "count",
    "distinct",
    "first",
    "last",
    "max_",
    "mean",
    "min_",
    "of",
    "quantiles",
    "sum_",
    "top",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # type checkers must refuse a name that does not exist

    def __getattr__(name: str) -> Any:
        return find_added_keyword(__name__, name, AGGREGATE_KEYWORDS)
