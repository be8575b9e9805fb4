"""Stages of a document while it is built from queries: a chain of sections, from the input to the last stage."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from penstock.stream.sql_loader.placed_text import PlacedText

Sections: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class StageChain:
    """The document of a query: an input with steps, or a stage after other stages.

    `links` are the sections of the first document and of each `then` after it.
    """

    links: tuple[Sections, ...]
    is_stage: bool = False
    """Whether the last link computes something, beyond an input and steps."""
    input_name: str = ""
    """What `of` and `join` call it: its topic, or its stage."""
    qualifiers: tuple[str, ...] = ()
    window: Any = None
    """A window around the source, as in `TABLE(TUMBLE(TABLE sensors, ...))`."""

    @property
    def last(self) -> Sections:
        """The sections of the last link."""
        return self.links[-1]

    def fold(self) -> Sections:
        """Return the links as one document."""
        document = self.links[-1]
        for sections in reversed(self.links[:-1]):
            document = {**sections, "then": document}
        return document

    def start_link(self) -> "StageChain":
        """Return a chain to which sections can be added: a stage is followed by a new link."""
        if not self.is_stage:
            return self
        return replace(self, links=(*self.links, {}), is_stage=False)

    def with_sections(self, **sections: Any) -> "StageChain":
        """Return a chain with more sections in its last link."""
        return replace(self, links=(*self.links[:-1], {**self.links[-1], **sections}))

    def with_step(self, step: Any) -> "StageChain":
        """Return a chain with one more step."""
        chain = self.start_link()
        return chain.with_sections(steps=[*chain.last.get("steps", []), step])

    def with_event_time(self, event_time: PlacedText) -> "StageChain | None":
        """Return a chain whose topic has this event time; None if its event time is given."""
        node = self.last.get("read")
        options = dict(node) if isinstance(node, Mapping) else {"topic": node}
        if (
            node is None
            or self.is_stage
            or len(self.links) > 1
            or options.get("event_time", event_time) != event_time
        ):
            return None
        return self.with_sections(read={**options, "event_time": event_time})
