"""The base class of triggers: what the engine, the validation, `explain` and the audit ask a trigger."""

from abc import ABC, abstractmethod

from penstock.core.duration import is_duration
from penstock.engine.definition.argument_checks import require, require_type
from penstock.engine.definition.predicates import Predicate
from penstock.engine.errors import DefinitionError
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine

TRIGGER_HINT = (
    "Give a trigger, as in repeatedly(after_count(1)) or after_watermark(early=every('10 seconds'))"
)


class Trigger(ABC):
    """When a window emits panes. SEMANTICS.md defines each trigger.

    A trigger is a frozen dataclass; plans store its fields. The defaults of the questions refuse a pipeline
    rather than let it lose records.
    """

    @abstractmethod
    def describe(self) -> str:
        """Return when it fires, as in `when 3 records have arrived`."""

    @abstractmethod
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        """Return the machine that runs it. Its state columns take their names from `column_names`."""

    @property
    def parts(self) -> tuple["Trigger", ...]:
        """The triggers directly inside this one. Default: none."""
        return ()

    @property
    def punctuation(self) -> tuple[Predicate, ...]:
        """The conditions whose matching elements it counts, each once. Default: those of its parts."""
        return tuple(dict.fromkeys(predicate for part in self.parts for predicate in part.punctuation))

    @property
    def can_finish(self) -> bool:
        """Whether it may finish, and then never fires again. Default: yes, so that it must be allowed to."""
        return True

    @property
    def fires_once(self) -> bool:
        """Whether it finishes when it fires, so that a window has at most one pane. Default: no."""
        return False

    @property
    def fires_at_end(self) -> bool:
        """Whether it fires when the watermark passes the end of a window, whatever came before. Default: no."""
        return False

    @property
    def can_fire_before_end(self) -> bool:
        """Whether it can fire before the watermark passes the end of a window. Default: yes."""
        return True

    @property
    def shows_all_elements(self) -> bool:
        """Whether the last pane of a window holds all of its elements, late ones included. Default: no."""
        return False

    @property
    def shows_all_elements_when_repeated(self) -> bool:
        """As `shows_all_elements`, for the trigger inside of `repeatedly`. Default: no."""
        return False

    def refuse_unreachable_parts(self) -> None:
        """Refuse parts that never get their turn. A plan may not have them. Default: ask its parts."""
        for part in self.parts:
            part.refuse_unreachable_parts()

    def describe_until_end(self) -> str:
        """Return when it fires in a window without allowed lateness. Default: as in any window."""
        return self.describe()

    def describe_repeated(self) -> str:
        """Return when it fires inside of `repeatedly`. Default: `repeatedly` before the phrase."""
        return f"repeatedly {self.describe()}"


def require_trigger(part: object, field: str) -> None:
    """Refuse a value that is not a trigger. A duration is probably a period."""
    if isinstance(part, str) and is_duration(part):
        repeated = f"repeatedly(every({part!r})), or after_watermark(early=every({part!r})) for early panes"
        fix = f"Write {repeated if field == 'trigger' else f'every({part!r})'}"
        raise DefinitionError(field, f"{part!r} is a duration, not a trigger", fix)
    require_type(part, Trigger, field, TRIGGER_HINT)


def require_triggers(parts: tuple[object, ...], field: str) -> None:
    """Refuse an empty list of triggers, and values in it that are not triggers."""
    require(len(parts) > 0, field, "no triggers", "Name at least one trigger")
    for part in parts:
        require_trigger(part, field)
