"""What a decision about quarantined records would do: it is shown first, and carried out when it is confirmed.

A confirmation names what was shown by a digest. If other records would be decided about by then, because more have
arrived or somebody else has decided, the decision is shown again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, get_args

from starlette.exceptions import HTTPException

from penstock.platform.console.quarantine_triage import select_pending
from penstock.platform.errors import UnknownQuarantinedRecordError
from penstock.platform.services.quarantine import TopicQuarantine
from penstock.quality.quarantine.quarantine_state import QuarantineState
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordOrigin, RecordPosition
from penstock.quality.quarantine.record_status import QuarantineStatus
from penstock.quality.quarantine.replay import ReplayJudgement

DecisionCommand = Literal["replay", "discard"]
COMMANDS: Sequence[DecisionCommand] = get_args(DecisionCommand)
FormFields = Mapping[str, str]


@dataclass(frozen=True)
class DecisionPlan:
    """The records of a decision. A replay has the judgement of each; a repaired value is in it."""

    command: DecisionCommand
    records: Sequence[QuarantinedRecord]
    judgement: ReplayJudgement | None
    skipped: int
    """How many of the selected records have a decision already."""

    @property
    def decided(self) -> Sequence[QuarantinedRecord]:
        """The records that the decision is about: of a replay, those that can be sent."""
        if self.judgement is None:
            return self.records
        return [record for record, _ in self.judgement.accepted]

    @property
    def digest(self) -> str:
        """What a confirmation confirms: the command, the records, and the bytes to send."""
        values = (
            {} if self.judgement is None else {each.position: sent for each, sent in self.judgement.accepted}
        )
        digest = sha256(self.command.encode())
        for record in self.decided:
            value = values.get(record.position, b"")
            digest.update(f"\n{record.position} {len(value)} ".encode() + value)
        return digest.hexdigest()


def plan_decision(
    quarantine: TopicQuarantine, statuses: Sequence[QuarantineStatus], form: FormFields
) -> DecisionPlan:
    """Return what the decision of a form would do. Changes nothing."""
    command = next((name for name in COMMANDS if name == form.get("command")), None)
    if command is None:
        raise HTTPException(
            400, f"There is no decision {form.get('command', '')!r}. Decisions: {', '.join(COMMANDS)}"
        )
    selected = _select_statuses(quarantine.topic, statuses, form)
    records = [status.record for status in selected if status.state is QuarantineState.PENDING]
    skipped = len(selected) - len(records)
    if command == "discard":
        return DecisionPlan(command, records, None, skipped)
    repaired = read_repaired_value(form, records[0]) if records and form.get("address") else None
    repaired_values: dict[RecordPosition, bytes] = {} if repaired is None else {records[0].position: repaired}
    return DecisionPlan(command, records, quarantine.judge_replay(records, repaired_values), skipped)


def read_repaired_value(form: FormFields, record: QuarantinedRecord) -> bytes | None:
    """Return the repaired value of a form; None if the form has none, or the record is unchanged.

    Browsers send each line break as CR LF.
    """
    if "value" not in form:
        return None
    text = form["value"].replace("\r\n", "\n")
    return None if record.value is not None and text == editable_text(record.value) else text.encode()


def editable_text(value: bytes | None) -> str | None:
    """Return a value as the text of a form; None if a form would change it: bytes, and control characters."""
    try:
        text = (value or b"").decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    return None if {"\0", "\r"} & {*text} else text


def _select_statuses(
    topic: str, statuses: Sequence[QuarantineStatus], form: FormFields
) -> Sequence[QuarantineStatus]:
    if not form.get("address"):
        origin: RecordOrigin = "dead-letters" if form.get("origin") == "dead-letters" else "topic"
        return select_pending(statuses, form.get("reason", ""), origin)
    return [find_status(topic, statuses, form["address"])]


def find_status(topic: str, statuses: Sequence[QuarantineStatus], address: str) -> QuarantineStatus:
    """Return the record at an address, such as 1:4711. Raises UnknownQuarantinedRecordError."""
    status = next((each for each in statuses if str(each.record.position) == address), None)
    if status is None:
        raise UnknownQuarantinedRecordError(
            f"{topic} {address} is not in quarantine. /quarantine/{topic} lists the records"
        )
    return status
