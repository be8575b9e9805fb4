"""What Terraform says when something is wrong, as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LOCK_SUMMARY = "Error acquiring the state lock"
_LOCK_LINE = re.compile(r"^\s*(ID|Operation|Who|Created):\s*(.*?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning: the resource, the reason, the line of HCL.

    `address` and `where` are empty when Terraform names none.
    """

    severity: str
    summary: str
    detail: str = ""
    address: str = ""
    where: str = ""

    def __str__(self) -> str:
        subject = self.address or self.where
        reason = f"{self.summary}: {self.detail}" if self.detail else self.summary
        return f"{subject}: {reason}" if subject else reason

    @property
    def is_error(self) -> bool:
        """Whether it stops the command; a warning does not."""
        return self.severity == "error"


@dataclass(frozen=True)
class LockHolder:
    """Who holds the lock of a state, for what, since when; `lock_id` releases it."""

    lock_id: str
    operation: str
    who: str
    created: str

    def __str__(self) -> str:
        return f"{self.who} ({self.operation}, since {self.created}, ID {self.lock_id})"


def read_diagnostic(document: Mapping[str, Any]) -> Diagnostic:
    """Make one from the form that events and `validate -json` share."""
    place = document.get("range") or {}
    line = (place.get("start") or {}).get("line")
    return Diagnostic(
        severity=document.get("severity", "error"),
        summary=document.get("summary", ""),
        detail=" ".join(document.get("detail", "").split()) if not _is_lock(document) else document["detail"],
        address=document.get("address", ""),
        where=f"{place['filename']}:{line}" if line else "",
    )


def plain_diagnostics(text: str) -> tuple[Diagnostic, ...]:
    """Make them from what a command without JSON wrote to its standard error."""
    unboxed = [line.lstrip("│╷╵ ").rstrip() for line in text.splitlines()]
    paragraphs = "\n".join(unboxed).split("Error: ")[1:]
    found = []
    for paragraph in paragraphs:
        summary, _, detail = paragraph.strip().partition("\n")
        found.append(Diagnostic("error", summary.strip(), " ".join(detail.split())))
    return tuple(found) or (
        Diagnostic("error", " ".join(" ".join(unboxed).split()) or "no reason was given"),
    )


def lock_holder(diagnostics: Iterable[Diagnostic]) -> LockHolder | None:
    """Find out who holds the lock, when that is what the diagnostics are about."""
    for diagnostic in diagnostics:
        facts = dict(_LOCK_LINE.findall(diagnostic.detail))
        if diagnostic.summary == LOCK_SUMMARY and "ID" in facts:
            return LockHolder(
                facts["ID"], facts.get("Operation", ""), facts.get("Who", ""), facts.get("Created", "")
            )
    return None


def _is_lock(document: Mapping[str, Any]) -> bool:
    return document.get("summary") == LOCK_SUMMARY
