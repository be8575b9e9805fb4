"""Records that a replay leaves out, by address, stored with it: a resumed replay leaves out the same."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from penstock.core.files import write_atomically
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.stages import Plan
from penstock.platform.errors import RecordAddressError
from penstock.quality.quarantine.quarantined_records import RecordPosition

TopicPosition = tuple[str, RecordPosition]

_FILE_NAME = "left_out.json"
_ADDRESS = re.compile(r"(?P<topic>[\w.-]+)/(?P<partition>\d+)@(?P<offset>\d+)", re.ASCII)


def store_left_out(directory: Path, plan: Plan, texts: Sequence[str]) -> list[TopicPosition]:
    """Return the records to leave out: these, and those that an earlier start of the run has stored."""
    path = directory / _FILE_NAME
    stored_texts = json.loads(path.read_text("utf-8")) if path.exists() else []
    all_texts = sorted({*stored_texts, *texts})
    addresses = [parse_address(text, plan) for text in all_texts]
    if all_texts != stored_texts:
        directory.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(all_texts))
    return addresses


def parse_address(text: str, plan: Plan) -> TopicPosition:
    """Parse the address of a record that a plan reads. Raises RecordAddressError for any other text."""
    topics = [topic_of(source) for source in plan.sources]
    parts = _ADDRESS.fullmatch(text)
    if parts is None:
        raise RecordAddressError(
            f"--without {text!r} is not the address of a record. Write TOPIC/PARTITION@OFFSET, such as "
            f"{topics[0]}/0@4711"
        )
    if parts["topic"] not in topics:
        raise RecordAddressError(
            f"--without {text}: {plan.name} does not read {parts['topic']}. It reads {', '.join(topics)}"
        )
    return parts["topic"], RecordPosition(int(parts["partition"]), int(parts["offset"]))
