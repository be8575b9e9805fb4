"""The trigger that is ready once all of several are."""

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from penstock.engine.definition.keyword import keyword
from penstock.engine.triggers.parallel_trigger import ParallelTrigger
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterAll(ParallelTrigger):
    """Ready when all of its triggers are ready. A trigger that is ready stays ready."""

    requires_all: ClassVar[bool] = True
    location: ClassVar[str] = "trigger.after_all"

    @override
    def describe_condition(self) -> str:
        return "when all of these are ready"


@keyword("after_all", synonyms=("all", "and"))
def after_all(*of: Trigger) -> AfterAll:
    """Fire once when all of the triggers are ready.

    Args:
        of: the triggers.

    Example:
        trigger(repeatedly(after_all(after_count(100), after_processing_time("1 minute"))))
    """
    return AfterAll(of)
