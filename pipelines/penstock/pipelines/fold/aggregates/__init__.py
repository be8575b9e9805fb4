"""Aggregates as columns: what Spark sends for each, how two become one, and what a pane shows."""

from penstock.pipelines.fold.aggregates.accumulator import Accumulator, Part, lifted, merge_into
from penstock.pipelines.fold.aggregates.registry import accumulator

__all__ = ["Accumulator", "Part", "accumulator", "lifted", "merge_into"]
