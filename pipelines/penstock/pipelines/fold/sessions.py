"""The fold of sessions: windows that grow and merge, so that a key's windows are looked at together.

Spark sends pieces: records of a key that lie within one gap of each other, with the bounds that they reach. The
key is the group by which state is found. Its rows are its open sessions, and the windows that these have
swallowed and whose panes still stand (see debts).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.aggregates import merge_into
from penstock.pipelines.fold.debts import debts_of, paid
from penstock.pipelines.fold.emission import emit
from penstock.pipelines.fold.identity import key_hashes
from penstock.pipelines.fold.joining import Joined, join
from penstock.pipelines.fold.machine import Merging
from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import Column, Rows, fresh, known_rows, numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.fold.touched import (
    Outcome,
    Touched,
    due_groups,
    missed,
    position_in,
    settled,
    summed,
    take_in,
    together,
)
from penstock.pipelines.state.columns import NEVER, Ints, Mask
from penstock.pipelines.state.run import Groups
from penstock.pipelines.state.tree import Tree


@dataclass(frozen=True)
class Open:
    """Open sessions: the number of each one's key, and what the state keeps of it."""

    key: Ints
    known: pa.Table

    def where(self, chosen: Mask) -> "Open":
        """Some of them."""
        return Open(self.key[chosen], self.known.filter(pa.array(chosen)))

    def column(self, name: str) -> Column:
        """One column of what is kept."""
        return numpy_column(self.known.column(name))


@dataclass(frozen=True)
class Wholes:
    """What sessions and pieces of a batch join to, and what becomes of each whole.

    `refused` takes no pieces; `made` becomes a session that was not there before; any other goes on as it was.
    """

    joined: Joined
    of_session: Ints
    of_piece: Ints
    refused: Mask
    made: Mask


@dataclass(frozen=True)
class Placed:
    """The sessions in hand after the batch's merges, and which row each session and piece became part of."""

    touched: Touched
    of_session: Ints
    of_piece: Ints


def fold_sessions(stage: ReadyStage, state: Tree, partials: pa.Table, moment: Moment) -> Outcome:
    """Fold pieces into sessions: merge first, then judge what came of it."""
    came = key_hashes([partials.column(field.name) for field in stage.key], partials.num_rows)
    keys = together(came, due_groups(state, moment))
    piece_key = position_in(keys, came)
    sessions, owed = _known(state, keys)
    wholes = _wholes(stage, sessions, piece_key, partials, moment)
    late, swallowed = wholes.refused[wholes.of_piece], wholes.made[wholes.of_session]
    placed = _placed(stage, keys, sessions, wholes, partials, piece_key)
    rows, names = placed.touched.rows, placed.touched.names
    debts = debts_of(owed.known, sessions.known, swallowed, placed.of_session, _owners(sessions, owed))
    _merge(stage, rows, sessions.where(swallowed), placed.of_session[swallowed], moment)
    take_in(stage, rows, partials.filter(pa.array(~late)), placed.of_piece[~late], moment)
    emitted = emit(stage, rows, names, moment)
    settlement, standing = paid(stage, debts, emitted.firing, rows, moment)
    whole = wholes.of_piece[late]
    return Outcome(
        pa.concat_tables([settled(stage, placed.touched, moment), standing]),
        pa.concat_tables([settlement, emitted.panes]),
        late,
        missed(stage, partials.filter(pa.array(late)), wholes.joined.start[whole], wholes.joined.end[whole]),
        np.append(np.zeros(settlement.num_rows, bool), emitted.restated),
    )


def _known(state: Tree, keys: Groups) -> tuple[Open, Open]:
    """The open sessions of some keys, and the windows that these owe."""
    known, key = state.lookup(keys)
    everything = Open(key, known)
    session = everything.column("owed_to") == NEVER
    return everything.where(session), everything.where(~session)


def _owners(sessions: Open, owed: Open) -> Ints:
    """For each owed window, the session that owes it; a key's open sessions begin at different times."""
    if not len(owed.key):
        return np.empty(0, np.int64)
    starts = zip(sessions.key.tolist(), sessions.column("window_start").tolist(), strict=True)
    number = {start: at for at, start in enumerate(starts)}
    named = zip(owed.key.tolist(), owed.column("owed_to").tolist(), strict=True)
    return np.array([number[name] for name in named], np.int64)


def _wholes(stage: ReadyStage, sessions: Open, piece_key: Ints, partials: pa.Table, moment: Moment) -> Wholes:
    start, end = (
        np.append(sessions.column(f"window_{bound}"), numpy_column(partials.column(f"piece_{bound}")))
        for bound in ("start", "end")
    )
    joined = join(np.append(sessions.key, piece_key), start, end)
    count, known = len(joined), len(sessions.key)
    of_session, of_piece = joined.whole[:known], joined.whole[known:]
    before, pieces = (np.bincount(of, minlength=count) for of in (of_session, of_piece))
    ended = joined.end <= moment.watermark_before
    over = sessions.column("finished") & (ended[of_session] | ~sessions.column("finished_at_end"))
    finished = (before > 0) & (summed(of_session, over.astype(np.int64), count) == before)
    closed = (before == 0) & (stage.closes_at(joined.end) <= moment.watermark_before)
    unchanged = np.zeros(count, bool)
    unchanged[of_session] = (start[:known] == joined.start[of_session]) & (
        end[:known] == joined.end[of_session]
    )
    still_finished = np.zeros(count, bool)
    still_finished[of_session] = sessions.column("finished")
    refused = closed | np.where(unchanged, still_finished, finished)
    return Wholes(joined, of_session, of_piece, refused, (pieces > 0) & ~unchanged & ~refused)


def _placed(
    stage: ReadyStage, keys: Groups, sessions: Open, wholes: Wholes, partials: pa.Table, piece_key: Ints
) -> Placed:
    """Rows for the sessions that go on, as they are, followed by new ones for the wholes that are made."""
    goes_on = ~wholes.made[wholes.of_session]
    kept, made = sessions.where(goes_on), np.flatnonzero(wholes.made)
    count = len(kept.key) + len(made)
    row_of_whole = np.full(len(wholes.joined), -1)
    row_of_whole[made] = len(kept.key) + np.arange(len(made))
    row_of_session = row_of_whole[wholes.of_session]
    row_of_session[goes_on] = np.arange(len(kept.key))
    row_of_whole[wholes.of_session[goes_on]] = row_of_session[goes_on]

    rows = fresh(stage.kept, count)
    for slot in stage.kept:
        rows[slot.name][: len(kept.key)] = kept.column(slot.name)
    example = np.zeros(len(wholes.joined), np.int64)
    example[wholes.of_piece] = np.arange(partials.num_rows)
    brought = partials.take(pa.array(example[made]))
    names = _names(stage, kept, brought, wholes.joined.start[made], wholes.joined.end[made])
    for name in ("window_start", "window_end"):
        rows[name] = numpy_column(names.column(name))
    groups = keys.where(np.append(kept.key, piece_key[example[made]]))
    return Placed(Touched(groups, rows, names), row_of_session, row_of_whole[wholes.of_piece])


def _names(stage: ReadyStage, kept: Open, brought: pa.Table, start: Ints, end: Ints) -> pa.Table:
    """Key and bounds: of sessions that go on, and of those that are made."""
    keys = [brought.column(field.name) for field in stage.key]
    made = pa.table([*keys, pa.array(start), pa.array(end)], schema=stage.names)
    return pa.concat_tables([kept.known.select(stage.names.names), made]).combine_chunks()


def _merge(stage: ReadyStage, rows: Rows, swallowed: Open, into: Ints, moment: Moment) -> None:
    """Make the new sessions what the swallowed ones add up to, before the batch's elements are counted."""
    parts = known_rows(swallowed.known.select([slot.name for slot in stage.kept]))
    merge_into(stage.parts, rows, into, parts)
    for name in ("records", "unshown"):
        rows[name] += summed(into, parts[name], len(rows))
    ended = rows["window_end"] <= moment.watermark_before
    merged = np.unique(into)
    rows["past_end"][merged] = ended[merged]
    merging = Merging(parts, into, parts["unshown"] > 0, ended)
    stage.machine.merge(rows, merging.among(~parts["finished"]))
