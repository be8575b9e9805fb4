"""Aggregates as columns: the SQL that builds partials, how partials merge, and what a pane shows."""

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart, lift_elements, merge_partials
from penstock.engine.aggregates.registry import build_accumulator

__all__ = ["Accumulator", "AccumulatorPart", "build_accumulator", "lift_elements", "merge_partials"]
