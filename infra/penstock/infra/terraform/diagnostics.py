"""Diagnostics of Terraform as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

STATE_LOCK_SUMMARY = "Error acquiring the state lock"
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
    source_line: str = ""

    def __str__(self) -> str:
        subject = self.address or self.source_line
        reason = f"{self.summary}: {self.detail}" if self.detail else self.summary
        return f"{subject}: {reason}" if subject else reason

    @property
    def is_error(self) -> bool:
        """Whether it is an error; a warning does not stop the command."""
        return self.severity == "error"


@dataclass(frozen=True)
class StateLockHolder:
    """The holder of a state lock, its operation and start; `lock_id` releases the lock."""

    lock_id: str
    operation: str
    owner: str
    created_at: str

    def __str__(self) -> str:
        return f"{self.owner} ({self.operation}, since {self.created_at}, ID {self.lock_id})"


def parse_diagnostic(document: Mapping[str, Any]) -> Diagnostic:
    """Make one from the form that events and `validate -json` share."""
    source_range = document.get("range") or {}
    line = (source_range.get("start") or {}).get("line")
    return Diagnostic(
        severity=document.get("severity", "error"),
        summary=document.get("summary", ""),
        detail=" ".join(document.get("detail", "").split())
        if not _is_lock_error(document)
        else document["detail"],
        address=document.get("address", ""),
        source_line=f"{source_range['filename']}:{line}" if line else "",
    )


def parse_plain_diagnostics(text: str) -> tuple[Diagnostic, ...]:
    """Make them from what a command without JSON wrote to its standard error."""
    plain_lines = [line.lstrip("│╷╵ ").rstrip() for line in text.splitlines()]
    paragraphs = "\n".join(plain_lines).split("Error: ")[1:]
    diagnostics = []
    for paragraph in paragraphs:
        summary, _, detail = paragraph.strip().partition("\n")
        diagnostics.append(Diagnostic("error", summary.strip(), " ".join(detail.split())))
    return tuple(diagnostics) or (
        Diagnostic("error", " ".join(" ".join(plain_lines).split()) or "no reason was given"),
    )


def find_lock_holder(diagnostics: Iterable[Diagnostic]) -> StateLockHolder | None:
    """Return the holder of the state lock if the diagnostics are about it."""
    for diagnostic in diagnostics:
        fields = dict(_LOCK_LINE.findall(diagnostic.detail))
        if diagnostic.summary == STATE_LOCK_SUMMARY and "ID" in fields:
            return StateLockHolder(
                fields["ID"], fields.get("Operation", ""), fields.get("Who", ""), fields.get("Created", "")
            )
    return None


def _is_lock_error(document: Mapping[str, Any]) -> bool:
    return document.get("summary") == STATE_LOCK_SUMMARY
