"""A batch's work for order windows: what each key holds, followed by what came, in one sequence."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.pipelines.fold.rows import Column, Rows
from penstock.pipelines.state.columns import Ints, Mask


@dataclass(frozen=True)
class Series:
    """Elements key by key, a key's in their order; `rows` has what is known of each.

    `held` says which are from the state: those of a key come first. One of them may stand for several records.
    """

    keys: int
    key: Ints
    held: Mask
    rows: Rows
    distances: Mapping[str, Column]

    @cached_property
    def first(self) -> Ints:
        """Where each key's elements begin."""
        return np.searchsorted(self.key, np.arange(self.keys))

    @cached_property
    def came(self) -> Ints:
        """Where each key's elements that came in this batch begin."""
        holds = np.bincount(self.key[self.held], minlength=self.keys)
        return self.first + holds

    @cached_property
    def beyond(self) -> Ints:
        """Where each key's elements end."""
        return np.searchsorted(self.key, np.arange(self.keys), side="right")

    def so_far(self, amounts: Column) -> Ints:
        """For each element, the sum over its key's elements up to and with it."""
        running = np.cumsum(amounts)
        before = np.append(0, running)[self.first[self.key]]
        return np.asarray(running - before)


@dataclass(frozen=True)
class Cut:
    """What a batch makes of a series: windows, each the elements [begin, end), as their keys show them.

    From `kept` on, a key's elements are still held; `heads` is what is known of each key from now on.
    """

    begin: Ints
    end: Ints
    key: Ints
    kept: Ints
    heads: Rows


def spans(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """All elements of some stretches [begin, end), one after the other, and for each the number of its stretch."""
    lengths = end - begin
    of = np.repeat(np.arange(len(begin)), lengths)
    within = np.arange(len(of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return begin[of] + within, of
