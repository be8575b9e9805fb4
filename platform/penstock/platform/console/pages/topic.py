"""The page of a topic: its contract, its partitions, its records decoded by the contract, and its dead letters."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request

from penstock.core.duration import is_duration, parse_duration_ms
from penstock.core.names import explain_unknown_name
from penstock.ingestion.consumers.topic_contents import StoredRecord
from penstock.ingestion.consumers.topic_slices import TopicSlices, open_topic_slices
from penstock.ingestion.contracts import list_contract_names, load_contract
from penstock.platform.console.console_context import ConsoleContext
from penstock.platform.console.live_page import LivePage, ViewModel
from penstock.platform.console.topic_reading import decode_record, open_decoder
from penstock.platform.errors import UnknownTopicError
from penstock.platform.log_reading.log_parser import to_milliseconds
from penstock.quality.quarantine.dead_letters import to_quarantined_records

SHOWN_RECORDS, SHOWN_DEAD_LETTERS = 50, 20
SEARCHED_RECORDS = 2_000
"""How many records of each partition a search for a key reads."""
_ADDRESS = re.compile(r"(\d+)@(\d+)")


@dataclass(frozen=True)
class RecordSearch:
    """Which records to show: from a time, from a position, or the newest; of all keys, or of those with a text."""

    start: str
    key: str
    problem: str = ""

    @classmethod
    def of_request(cls, request: Request) -> "RecordSearch":
        """Return the search of a request."""
        start = request.query_params.get("from", "").strip()
        return cls(start, request.query_params.get("key", "").strip())


@dataclass(frozen=True)
class PartitionRow:
    """A partition with its offsets."""

    partition: int
    first_offset: int
    end_offset: int

    @property
    def records(self) -> int:
        """The number of offsets."""
        return self.end_offset - self.first_offset


def read_topic_page(request: Request, context: ConsoleContext) -> ViewModel:
    """Read the model of the page. Raises UnknownTopicError for a topic without a contract."""
    topic = request.path_params["topic"]
    if topic not in list_contract_names():
        raise UnknownTopicError(
            explain_unknown_name("topic", topic, list_contract_names(), "penstock topics list")
        )
    contract, kafka = load_contract(topic), context.settings.kafka
    decode, search = open_decoder(context.settings, contract), RecordSearch.of_request(request)
    client = kafka.client_config("host")
    with open_topic_slices(kafka.bootstrap_servers, topic, client) as slices:
        records, problem = _search_records(slices, search, context.clock())
        partitions = [
            PartitionRow(partition, slices.first_offsets[partition], end)
            for partition, end in slices.end_offsets.items()
        ]
    with open_topic_slices(kafka.bootstrap_servers, contract.dead_letter_topic, client) as slices:
        dead = _newest(slices.read(slices.find_newest_offsets(SHOWN_DEAD_LETTERS), SHOWN_DEAD_LETTERS))
    return {
        "topic": topic,
        "contract": contract,
        "fields": [nested for each in contract.fields for nested in each.iter_nested()],
        "partitions": partitions,
        "search": search,
        "search_problem": problem,
        "searched": SEARCHED_RECORDS,
        "records": [decode_record(decode, record) for record in records],
        "dead_letters": list(to_quarantined_records(topic, dead[:SHOWN_DEAD_LETTERS])),
        "readers": [
            each.stream
            for each in context.stack.read().view.streams
            if topic in context.ends.read(each.stream).topics
        ],
    }


def _search_records(
    slices: TopicSlices, search: RecordSearch, now_ms: int
) -> tuple[Sequence[StoredRecord], str]:
    """Return the records of a search, and what is wrong with it."""
    limit = SEARCHED_RECORDS if search.key else SHOWN_RECORDS
    if not search.start:
        found = slices.read(slices.find_newest_offsets(limit), limit)
        return _filter_keys(_newest(found), search.key), ""
    starts = _find_starts(slices, search.start, now_ms)
    if starts is None:
        problem = f"{search.start!r} is no start. Write 10m, 2026-01-31T12:00 (UTC), or PARTITION@OFFSET."
        return [], problem
    found = slices.read(starts, limit)
    oldest_first = sorted(found, key=lambda record: (record.arrived_ms or 0, record.partition, record.offset))
    return _filter_keys(oldest_first, search.key), ""


def _find_starts(slices: TopicSlices, start: str, now_ms: int) -> Mapping[int, int] | None:
    """Return the offset of each partition from which to read; None if the start cannot be read."""
    if (address := _ADDRESS.fullmatch(start)) is not None:
        partition, offset = int(address[1]), int(address[2])
        return {partition: offset} if partition in slices.end_offsets else {}
    at_ms = now_ms - parse_duration_ms(start) if is_duration(start) else to_milliseconds(start)
    return None if at_ms is None else slices.find_offsets_at(at_ms)


def _newest(records: Sequence[StoredRecord]) -> list[StoredRecord]:
    return sorted(records, key=lambda record: (record.arrived_ms or 0, record.offset), reverse=True)


def _filter_keys(records: Sequence[StoredRecord], text: str) -> list[StoredRecord]:
    """Return the first records whose key contains a text."""
    wanted = text.encode()
    return [record for record in records if not wanted or wanted in (record.key or b"")][:SHOWN_RECORDS]


ROUTES = [LivePage("topic.html", read_topic_page, interval_s=5.0).route("/topics/{topic}", "topic")]
