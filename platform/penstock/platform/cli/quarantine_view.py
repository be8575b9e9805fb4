"""Quarantined records as rows and JSON for `penstock quarantine`."""

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.quality.quarantine.record_status import QuarantineStatus

RECORD_COLUMNS = ("address", "arrived", "reason", "detail", "by", "contract", "state", "value")
_MAX_VALUE_CHARS = 60


def to_row(status: "QuarantineStatus", current_versions: set[str], detail: str) -> tuple[object, ...]:
    """Format a record as a row. `current_versions` are the contract versions that streams validate with now.

    `detail` says what is wrong with the record.
    """
    record = status.record
    contract_label = "current" if set(record.contracts) <= current_versions else "older"
    if record.position.is_dead_letter:
        contract_label = ""  # producers do not record the version that they checked
    arrived = record.arrived_at.strftime("%Y-%m-%d %H:%M:%S") if record.arrived_at else ""
    streams, text = ", ".join(dict.fromkeys(record.streams)), repr(record.value)[2:-1] if record.value else ""
    value_text = text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}…"
    reason, _, found = record.reason.partition(" (")  # a dead letter has its detail behind its reason
    return (
        record.position,
        arrived,
        reason,
        detail or found.removesuffix(")"),
        streams,
        contract_label,
        _format_state(status),
        value_text,
    )


def _format_state(status: "QuarantineStatus") -> str:
    return (
        status.state
        if status.address is None
        else f"replayed to {status.address.partition}:{status.address.offset}"
    )


def to_data(status: "QuarantineStatus", detail: str) -> dict[str, Any]:
    """Return all details of a record as JSON data."""
    record, decision = status.record, status.decision
    return {
        "topic": record.topic,
        "origin": record.position.origin,
        "partition": record.position.partition,
        "offset": record.position.offset,
        "arrived": record.arrived_at.isoformat() if record.arrived_at else None,
        "reason": record.reason,
        "detail": detail or None,
        "streams": list(record.streams),
        "contracts": list(filter(None, record.contracts)),
        "state": _format_state(status),
        "decided": datetime.fromtimestamp(decision.at_ms / 1000, UTC).isoformat() if decision else None,
        "why": decision.why if decision and decision.why else None,
        **_format_bytes("key", record.key),
        **_format_bytes("value", record.value),
    }


def _format_bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    """Return bytes as text if they are UTF-8, otherwise as base64."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: None, f"{name}_base64": base64.b64encode(value).decode()}
