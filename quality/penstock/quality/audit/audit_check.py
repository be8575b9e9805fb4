"""What an audit check is: a marked function, found by discovery."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

from penstock.core.kind_registry import KindRegistry
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.scope import AuditScope
from penstock.quality.audit.topic_view import TopicView
from penstock.quality.audit.verdict import CheckOutcome

LAST_ORDER = 1_000
"""The order of a check that names none: after all checks of Penstock."""

Inputs = ParamSpec("Inputs")


@dataclass(frozen=True)
class AuditCheck(Generic[Inputs]):
    """A check, its name in reports, and its position among the checks of its class."""

    name: str
    order: int
    run: Callable[Inputs, CheckOutcome]

    @classmethod
    def mark(
        cls, name: str, order: int = LAST_ORDER
    ) -> Callable[[Callable[Inputs, CheckOutcome]], Callable[Inputs, CheckOutcome]]:
        """Return a decorator that makes a function a check of this class, and leaves it callable."""

        def mark_function(function: Callable[Inputs, CheckOutcome]) -> Callable[Inputs, CheckOutcome]:
            function.__dict__["audit_check"] = cls(name, order, function)
            return function

        return mark_function


class StreamCheck(AuditCheck[[AuditScope]]):
    """A check of the tables and journals of a stream. Its report comes first."""


class TopicCheck(AuditCheck[[TopicView]]):
    """A check of each topic that a stream reads. Its name in reports ends with the topic."""


class ResultCheck(AuditCheck[[AuditScope, Mapping[str, TopicView], Sample]]):
    """A check of a sample of the results against the records of all topics. Its report comes last."""


stream_check = StreamCheck.mark
topic_check = TopicCheck.mark
result_check = ResultCheck.mark

Check = TypeVar("Check", bound=AuditCheck[...])


def _find_check(candidate: Any) -> AuditCheck[...] | None:
    check = getattr(candidate, "__dict__", {}).get("audit_check")
    return check if isinstance(check, AuditCheck) else None


def _name_check(member: Any) -> str | None:
    check = _find_check(member)
    return check.name if check is not None else None


AUDIT_CHECKS: KindRegistry[Callable[..., CheckOutcome]] = KindRegistry(
    noun="audit check",
    packages=("penstock.quality.audit.checks",),
    entry_point_group="penstock.audit_checks",
    name_kind=_name_check,
    is_kind=lambda candidate: _find_check(candidate) is not None,
    how_to_define="Name a function that is marked with @stream_check, @topic_check or @result_check.",
)


def list_checks(check_class: type[Check]) -> list[Check]:
    """Return the checks of a class in the order of reports."""
    checks = map(_find_check, AUDIT_CHECKS.kinds_by_name.values())
    return sorted(
        (check for check in checks if isinstance(check, check_class)),
        key=lambda check: (check.order, check.name),
    )
