"""Joins without windows: who met whom is looked up among all that are still held, record by record."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.pipelines.plan.joins import Join
from penstock.pipelines.plan.pairing import AsOf, Between
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.reference.answers import LateRow, Pane
from penstock.pipelines.reference.conditions import meets
from penstock.pipelines.reference.firing import Moment
from penstock.pipelines.reference.records import Address, Element


@dataclass
class Waiting:
    """A record that may still meet others."""

    element: Element
    matched: bool = False
    new: bool = True


@dataclass
class Paired:
    """All records that are held for a join."""

    stage: Stage
    window: Between | AsOf
    held: list[Waiting] = field(default_factory=list)
    late: list[LateRow] = field(default_factory=list)

    @property
    def join(self) -> Join:
        """Return what is joined."""
        assert self.stage.join is not None
        return self.stage.join

    def fold(self, elements: Sequence[Element], moment: Moment) -> set[Address]:
        """Hold what is not late."""
        taken = [each for each in elements if moment.before < each.time + 1 + self.stage.lateness]
        for each in elements:
            if each not in taken:
                by = moment.before - (each.time + 1 + self.stage.lateness)
                where = (each.time, each.time + 1)
                self.late.append(
                    LateRow(
                        each.address, each.key, each.time, *where, "closed", moment.before, by, moment.batch
                    )
                )
        self.held += [Waiting(each) for each in sorted(taken, key=lambda each: each.address)]
        return {each.address for each in taken}

    def emit(self, moment: Moment) -> Iterator[Pane]:
        """Show every row that is sure now, and let go of what nobody can ask for any more."""
        rows = self.as_of(moment) if isinstance(self.window, AsOf) else self.between(self.window, moment)
        yield from (self.pane(left, right, moment) for left, right in rows)
        for each in self.held:
            each.new = False

    def between(self, window: Between, moment: Moment) -> "Iterator[Row]":
        """Yield pairs of which one has just come, and those that found nobody when they go."""
        kind = self.join.kind
        for left in self.side(self.join.left):
            for right in self.side(self.join.right):
                near = -window.before <= right.element.time - left.element.time <= window.after
                if near and meet(left.element, right.element) and (left.new or right.new):
                    if kind == "semi" and not left.matched:
                        yield left.element, None
                    left.matched = right.matched = True
                    if kind not in ("semi", "anti"):
                        yield left.element, right.element
        for each in list(self.held):
            is_left = each.element.address[0] == self.join.left
            reach = window.after if is_left else window.before
            if moment.watermark < each.element.time + reach + 1 + self.stage.lateness:
                continue
            self.held.remove(each)
            if is_left and kind in ("left", "full", "anti") and not each.matched:
                yield each.element, None
            if not is_left and kind in ("right", "full") and not each.matched:
                yield None, each.element

    def as_of(self, moment: Moment) -> "Iterator[Row]":
        """Yield records whose time has come, each with the newest partner that is no younger."""
        for left in self.side(self.join.left):
            if moment.watermark < left.element.time + 1 + self.stage.lateness:
                continue
            self.held.remove(left)
            found = self.newest(left.element)
            if found is not None and self.join.kind != "anti":
                yield left.element, found
            if found is None and self.join.kind in ("left", "anti"):
                yield left.element, None

    def newest(self, left: Element) -> Element | None:
        """Return the partner of a record: of those of one time the last that came."""
        assert isinstance(self.window, AsOf)
        found = None
        for each in self.side(self.join.right):
            right = each.element
            older = right.time <= left.time and meet(left, right)
            if older and (found is None or right.time >= found.time):
                found = right
        ends = self.window.ends
        if found is not None and ends is not None and meets(found.fields, ends):
            return None
        far = found is not None and self.window.tolerance is not None
        return None if far and left.time - found.time > self.window.tolerance else found  # type: ignore[union-attr,operator]

    def side(self, name: str) -> list[Waiting]:
        """Return what is held of one input."""
        return [each for each in self.held if each.element.address[0] == name]

    def pane(self, left: Element | None, right: Element | None, moment: Moment) -> Pane:
        """Return a row as what it is: the only pane of a window of one moment."""
        there = [each for each in (left, right) if each is not None]
        at = max(each.time for each in there) if isinstance(self.window, Between) else there[0].time
        sides = {self.join.left: left, self.join.right: right if self.join.kind != "semi" else None}
        columns = ((column.name, value_of(sides[column.input], column.field)) for column in self.join.columns)
        return Pane(
            key=there[0].key,
            start=at,
            end=at + 1,
            values=tuple(columns),
            pane=0,
            timing="on_time",
            on_time_index=0,
            final=True,
            kind="insert",
            records=len(there),
            batch=moment.batch,
            clock=moment.clock,
            watermark=moment.stream_watermark,
        )

    def missed(self) -> list[LateRow]:
        """Return the late rows of the batch, and forget them."""
        late, self.late = self.late, []
        return late


Row = tuple[Element | None, Element | None]


def meet(one: Element, other: Element) -> bool:
    """Tell whether two have one key: as in SQL, one with a null in it meets nobody."""
    return one.key == other.key and None not in one.key


def value_of(element: Element | None, name: str) -> Any:
    """Return a field of a record, or null where there is none."""
    return None if element is None else element.fields.get(name)
