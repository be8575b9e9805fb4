"""Who meets whom: decided for all records of a batch at once. Pure functions over numbers."""

from dataclasses import dataclass

import numpy as np

from penstock.pipelines.fold.pairing.hand import Records
from penstock.pipelines.plan.pairing import AsOf, Between
from penstock.pipelines.state.columns import NEVER, Ints, Mask


@dataclass(frozen=True)
class Met:
    """Pairs, as numbers of records; -1 stands for no partner. And which records are held from now on."""

    left: Ints
    right: Ints
    matched: Mask
    held: Mask
    due: Ints
    """The watermark at which something is to be done about each record that is held."""


def between(window: Between, records: Records, lateness: int, watermark: int) -> Met:
    """Every pair of which one has just come; what waits until no partner can come any more is let go then."""
    lefts, rights = (np.flatnonzero(side & ~records.apart) for side in (records.left, ~records.left))
    new = records.new
    first = _within(window, records, lefts[new[lefts]], rights)
    second = _within(window, records, lefts[~new[lefts]], rights[new[rights]])
    left, right = (np.append(one, other) for one, other in zip(first, second, strict=True))
    matched = records.matched.copy()
    matched[left] = matched[right] = True
    reach = np.where(records.left, window.after, window.before)
    due = _plus(records.time, reach + 1 + lateness)
    return Met(left, right, matched, due > watermark, due)


def as_of(window: AsOf, records: Records, lateness: int, watermark: int) -> Met:
    """The newest partner of each record of the left whose time has come; before that, older ones may still come."""
    good = NEVER if window.tolerance is None else window.tolerance + 1 + lateness
    # What ends those before it is of use as long as they are held.
    of_version = np.where(records.ends, min(good, lateness), good)
    due = _plus(records.time, np.where(records.left, 1 + lateness, of_version))
    asking = np.flatnonzero(records.left & (due <= watermark))
    versions = _in_order(records, np.flatnonzero(~records.left & ~records.apart))
    times = np.unique(records.time[versions])
    place = _place(records.key[versions], np.searchsorted(times, records.time[versions]), len(times))
    wanted = _place(records.key[asking], np.searchsorted(times, records.time[asking], "right"), len(times))
    nearest = np.searchsorted(place, wanted, "left") - 1
    found = versions[np.maximum(nearest, 0)] if len(versions) else np.zeros(len(asking), np.int64)
    there = (nearest >= 0) & (len(versions) > 0)
    there &= (records.key[found] == records.key[asking]) if len(versions) else there
    if window.tolerance is not None and len(versions):
        there &= records.time[asking] - records.time[found] <= window.tolerance
    there &= ~records.ends[found]
    matched = records.matched.copy()
    matched[asking[there]] = True
    held = np.where(records.left, due > watermark, False)
    held[versions[_still_needed(records, versions, lateness, watermark)]] = True
    held &= due > watermark  # nobody who is in time is near enough to a version that is not due later
    return Met(asking, np.where(there, found, -1), matched, held, due)


def _within(window: Between, records: Records, lefts: Ints, rights: Ints) -> tuple[Ints, Ints]:
    """Pairs of records of one key that lie near enough."""
    rights = _in_order(records, rights)
    times = np.unique(records.time[rights])
    place = _place(records.key[rights], np.searchsorted(times, records.time[rights]), len(times))
    time, key = records.time[lefts], records.key[lefts]
    lowest = _place(key, np.searchsorted(times, time - window.before, "left"), len(times))
    beyond = _place(key, np.searchsorted(times, time + window.after, "right"), len(times))
    begin, end = np.searchsorted(place, lowest, "left"), np.searchsorted(place, beyond, "left")
    many = end - begin
    left = np.repeat(lefts, many)
    nth = np.arange(len(left)) - np.repeat(np.cumsum(many) - many, many)
    return left, rights[np.repeat(begin, many) + nth]


def _in_order(records: Records, chosen: Ints) -> Ints:
    """Some records by key, time and arrival."""
    return chosen[np.lexsort((chosen, records.time[chosen], records.key[chosen]))]


def _place(key: Ints, rank: Ints, ranks: int) -> Ints:
    """Key and rank of a time as one number."""
    return np.asarray(key, np.int64) * (ranks + 1) + rank


def _still_needed(records: Records, versions: Ints, lateness: int, watermark: int) -> Mask:
    """Which versions may still be asked for: the last of each instant, unless a later one is old enough."""
    key, time = records.key[versions], records.time[versions]
    followed = np.zeros(len(versions), bool)
    oldest = watermark - lateness if watermark != NEVER else NEVER
    followed[:-1] = (key[1:] == key[:-1]) & ((time[1:] <= oldest) | (time[1:] == time[:-1]))
    return ~followed


def _plus(time: Ints, span: Ints) -> Ints:
    """A moment later, but never later than the end of time."""
    endless = (span == NEVER) | (time > NEVER - span)
    return np.where(endless, NEVER, time + np.where(endless, 0, span))
