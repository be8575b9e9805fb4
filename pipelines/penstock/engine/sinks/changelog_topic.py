"""A Kafka topic to which the panes of a stage are published as changes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.engine.definition.argument_checks import require_storage_name
from penstock.engine.plan.sinks import ReplayRule, Sink

if TYPE_CHECKING:
    from penstock.engine.tables.sink_target import SinkContext, SinkTarget


@dataclass(frozen=True)
class ChangelogTopic(Sink):
    """A topic for the panes of a stage. Readers of committed records see each pane exactly once."""

    folder: ClassVar[str] = "published"
    takes_changes: ClassVar[bool] = True
    replay_rule: ClassVar[ReplayRule] = ReplayRule.KEEP  # readers have seen the published panes

    topic: str

    def __post_init__(self) -> None:
        require_storage_name(self.topic, "publish")

    @property
    def name(self) -> str:
        """The name of the topic."""
        return self.topic

    @property
    def published_topic(self) -> str:
        """The topic."""
        return self.topic

    def describe(self) -> str:
        """Describe how it is written."""
        return f"publish every pane as a change to topic {self.topic}"

    def describe_content(self) -> str:
        """Describe what it holds."""
        return "every pane as a change"

    def open(self, context: "SinkContext") -> "SinkTarget | None":
        """Open the topic; None over bounded input, which publishes nothing."""
        from penstock.engine.tables.published_topic import PublishedTopic

        if context.client_config is None:
            return None
        return PublishedTopic(
            self.topic, context.key, context.path, context.application, context.client_config
        )
