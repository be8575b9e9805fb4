"""What `penstock quarantine` shows of a record."""

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.quality.quarantine.standing import Standing

COLUMNS = ("address", "arrived", "reason", "by", "contract", "state", "value")
_WIDEST = 60


def row_of(one: "Standing", now: set[str]) -> tuple[object, ...]:
    """A record as a row; `now` are the versions of the contract by which streams judge."""
    record = one.record
    judged = "as now" if set(record.contracts) <= now else "older"
    arrived = record.arrived.strftime("%Y-%m-%d %H:%M:%S") if record.arrived else ""
    streams, text = ", ".join(dict.fromkeys(record.streams)), repr(record.value)[2:-1] if record.value else ""
    shown = text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"
    return record.place, arrived, record.reason, streams, judged, _stands(one), shown


def _stands(one: "Standing") -> str:
    return one.state if one.address is None else f"replayed to {one.address.partition}:{one.address.offset}"


def as_data(one: "Standing") -> dict[str, Any]:
    """Everything that is known of a record, for programs."""
    record, decision = one.record, one.decision
    return {
        "topic": record.topic,
        "partition": record.place.partition,
        "offset": record.place.offset,
        "arrived": record.arrived.isoformat() if record.arrived else None,
        "reason": record.reason,
        "streams": list(record.streams),
        "contracts": list(record.contracts),
        "state": _stands(one),
        "decided": datetime.fromtimestamp(decision.at_ms / 1000, UTC).isoformat() if decision else None,
        "why": decision.why if decision and decision.why else None,
        **_shown_bytes("key", record.key),
        **_shown_bytes("value", record.value),
    }


def _shown_bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    """Bytes as text where they are text, and else in base64."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: None, f"{name}_base64": base64.b64encode(value).decode()}
