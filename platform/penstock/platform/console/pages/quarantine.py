"""The pages of quarantined records: the topics that have any, one topic by reason, and one record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from starlette.requests import Request

from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.console.decision_plan import editable_text, find_status
from penstock.platform.console.live_page import LivePage, ViewModel
from penstock.platform.console.quarantine_triage import group_by_reason, name_reason
from penstock.platform.console.stream_table import Tone
from penstock.platform.services.operator_actions import OperatorAction, read_actions
from penstock.quality.quarantine.quarantine_state import QuarantineState
from penstock.quality.quarantine.quarantined_records import RecordOrigin
from penstock.quality.quarantine.record_status import QuarantineStatus, count_states

SHOWN_RECORDS, SHOWN_ACTIONS = 50, 12
ANY_STATE = "any"
STATE_TONES: dict[str, Tone] = {
    QuarantineState.PENDING: "busy",
    QuarantineState.REPLAYING: "busy",
    QuarantineState.REPLAYED: "good",
    QuarantineState.DISCARDED: "idle",
}
ORIGINS: Sequence[RecordOrigin] = get_args(RecordOrigin)


@dataclass(frozen=True)
class RecordFilter:
    """Which records a request asks to see. An empty reason is every reason."""

    state: str
    reason: str
    origin: str
    text: str

    @classmethod
    def of_request(cls, request: Request) -> "RecordFilter":
        """Return the filter; a state that there is not is replaced by the default."""
        query = request.query_params
        state = query.get("state", QuarantineState.PENDING)
        known = (*QuarantineState, ANY_STATE)
        return cls(
            state if state in known else QuarantineState.PENDING,
            query.get("reason", ""),
            query.get("origin", ""),
            query.get("q", "").strip(),
        )

    def accepts(self, status: QuarantineStatus) -> bool:
        """Return whether the filter shows a record."""
        record = status.record
        return (
            self.state in (ANY_STATE, status.state)
            and (not self.reason or name_reason(status) == self.reason)
            and self.origin in ("", record.position.origin)
            and (
                not self.text
                or self.text in f"{record.position} {record.reason}"
                or any(self.text.encode() in (part or b"") for part in (record.key, record.value))
            )
        )


def read_index_page(_request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page of all topics."""
    return {"topics": context.quarantine.count_topics()}


def read_topic_page(request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page of a topic. Raises UnknownTopicError."""
    topic, record_filter = request.path_params["topic"], RecordFilter.of_request(request)
    reading = context.quarantine.read(topic)
    groups = group_by_reason(reading.statuses)
    found = [status for status in reading.statuses if record_filter.accepts(status)]
    shown = found[:SHOWN_RECORDS]
    quarantine = context.quarantine.open(topic)
    samples = [group.sample.record for group in groups]
    return {
        "topic": topic,
        "problem": reading.problem,
        "states": count_states(reading.statuses),
        "groups": groups,
        "details": quarantine.explain_reasons([*samples, *(status.record for status in shown)]),
        "filter": record_filter,
        "filter_states": [*QuarantineState, ANY_STATE],
        "found": len(found),
        "records": shown,
        "tones": STATE_TONES,
        "actions": _list_actions(context, topic),
        "outcome": _read_outcome(request),
    }


def read_record_page(request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page of a record. Raises UnknownTopicError, or UnknownQuarantinedRecordError."""
    topic = request.path_params["topic"]
    reading = context.quarantine.read(topic)
    status = find_status(topic, reading.statuses, request.path_params["address"])
    quarantine = context.quarantine.open(topic)
    versions = quarantine.contract_versions()
    return {
        "topic": topic,
        "status": status,
        "record": status.record,
        "detail": quarantine.explain_reasons([status.record]).get(status.record.position, ""),
        "refusals": [
            (stream, contract, versions.get(stream) == contract)
            for stream, contract in status.record.refusals
        ],
        "text": editable_text(status.record.value),
        "tones": STATE_TONES,
    }


def _read_outcome(request: Request) -> str:
    """Return what the decision did that led to this page; empty if none did."""
    counts = {name: request.query_params.get(name, "") for name in ("decided", "sent")}
    texts = [
        f"{int(count):,} {name}" for name, count in counts.items() if count.isdecimal() and len(count) < 12
    ]
    return ", ".join(texts)


def _list_actions(context: ConsoleContext, topic: str) -> list[OperatorAction]:
    """Return the newest decisions about records of a topic, the newest first."""
    own = [
        action
        for action in read_actions(context.settings.home)
        if action.target == topic and action.action.startswith("quarantine")
    ]
    return own[::-1][:SHOWN_ACTIONS]


ROUTES = [
    LivePage("quarantine_topics.html", read_index_page, interval_s=10.0).route("/quarantine", "quarantine"),
    LivePage("quarantine.html", read_topic_page, interval_s=5.0).route(
        "/quarantine/{topic}", "quarantine_topic"
    ),
    LivePage("quarantined_record.html", read_record_page, interval_s=10.0).route(
        "/quarantine/{topic}/records/{address:path}", "quarantined_record"
    ),
]
