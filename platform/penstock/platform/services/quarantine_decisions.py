"""Decisions on quarantined records, for the command line and the console, recorded with who decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.ingestion.errors import TopicReadError
from penstock.platform.services.operator_actions import ActionOrigin, record_action
from penstock.platform.services.quarantine import QuarantineReplayResult, TopicQuarantine
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord
from penstock.quality.quarantine.record_status import QuarantineStatus
from penstock.quality.quarantine.replay import ReplayJudgement

MAX_RECORDED_POSITIONS = 100
"""How many addresses the journal of actions has of a decision; the log of decisions has all."""


@dataclass(frozen=True)
class DecisionAuthor:
    """Who decides, from where, and why. Without a user, it is the user of this process."""

    why: str = ""
    origin: ActionOrigin = "command line"
    user: str = ""


def read_known_statuses(quarantine: TopicQuarantine) -> tuple[list[QuarantineStatus], str]:
    """Return the status of each record, and why the dead letters are missing; empty if they are not."""
    statuses = quarantine.list_quarantined()
    try:
        return [*statuses, *quarantine.list_dead_letters()], ""
    except TopicReadError as error:
        return statuses, str(error)


def replay_records(
    home: Path, quarantine: TopicQuarantine, judgement: ReplayJudgement, author: DecisionAuthor
) -> QuarantineReplayResult:
    """Record who replays the accepted records, and send them, with those of earlier replays that are incomplete."""
    if judgement.accepted:
        accepted = [record for record, _ in judgement.accepted]
        _record_decision(home, "quarantine replay", quarantine.topic, accepted, author)
    return quarantine.replay(judgement, author.why)


def discard_records(
    home: Path, quarantine: TopicQuarantine, records: Sequence[QuarantinedRecord], author: DecisionAuthor
) -> int:
    """Record who discards records, and discard them; return the number of new decisions."""
    _record_decision(home, "quarantine discard", quarantine.topic, records, author)
    return quarantine.discard(records, author.why)


def _record_decision(
    home: Path, action: str, topic: str, records: Sequence[QuarantinedRecord], author: DecisionAuthor
) -> None:
    details = {
        "records": len(records),
        "items": [str(record.position) for record in records[:MAX_RECORDED_POSITIONS]],
        **({"why": author.why} if author.why else {}),
    }
    record_action(home, action, topic, details, author.origin, author.user)
