"""The trigger that is ready as soon as one of several is."""

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from penstock.engine.definition.keyword import keyword
from penstock.engine.triggers.parallel_trigger import ParallelTrigger
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterAny(ParallelTrigger):
    """Ready when one of its triggers is ready."""

    requires_all: ClassVar[bool] = False
    location: ClassVar[str] = "trigger.after_any"

    @override
    def describe_condition(self) -> str:
        return "when the first of these is ready"


@keyword("after_any", synonyms=("afterfirst", "any", "or"))
def after_any(*of: Trigger) -> AfterAny:
    """Fire once when one of the triggers is ready.

    Args:
        of: the triggers.

    Example:
        trigger(repeatedly(after_any(after_count(100), after_processing_time("1 minute"))))
    """
    return AfterAny(of)
