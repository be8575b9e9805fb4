"""The name under which windows at HEAD still find aggregates; goes with its last importer."""

from penstock.pipelines.fold.aggregates import Accumulator, Part, accumulator, merge_into

__all__ = ["Accumulator", "Part", "accumulator", "merge_into"]
