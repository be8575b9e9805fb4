"""How fast the records of each format are encoded, and judged as a stream judges them in Python, on one core.

`python -m tests.benchmarks.bench_record_formats` prints the records in a second of CPU time for each format.
"""

import argparse
import time
from collections.abc import Callable

import msgspec
from tests.ingestion.contracts.format_contracts import make_contract, make_format_codec, make_schemas

from penstock.ingestion.contracts import ContractField, json_codec
from penstock.ingestion.contracts.record_formats.format_discovery import RECORD_FORMATS, find_record_format
from penstock.ingestion.contracts.record_judge import record_judge
from penstock.ingestion.contracts.record_rules import to_record_rules

FIELDS = (
    ContractField("id", "string", "."),
    ContractField("device", "string", "."),
    ContractField("at", "timestamp", "."),
    ContractField("temperature", "double", "."),
    ContractField("humidity", "double", ".", required=False),
    ContractField("count", "int", "."),
)
REPEATS = 5


def main() -> None:
    """Print a line for each format."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    count = parser.parse_args().records
    for encoding in RECORD_FORMATS.kinds_by_name:
        contract = make_contract(encoding, FIELDS)
        schemas, codec = make_schemas(contract), make_format_codec(contract)
        rows = [
            {"id": f"r{number}", "device": f"device-{number % 100}", "at": number, "temperature": number / 7}
            | {"humidity": 0.5, "count": number}
            for number in range(count)
        ]
        records = [json_codec(contract).decode(msgspec.json.encode(row)) for row in rows]
        values = [codec.encode(record) for record in records]
        encoding_rate = measure_rate(
            lambda codec=codec, records=records: [*map(codec.encode, records)], count
        )
        line = f"{encoding:12} {sum(map(len, values)) / count:5.0f} bytes  encoded {encoding_rate:>9,.0f}/s"
        if find_record_format(encoding).stream_parser != "avro":
            rules = to_record_rules(contract)
            read_json = find_record_format(encoding).open_reader(rules, schemas.get)
            judge = record_judge(rules).to_canonical_json
            judged_rate = measure_rate(
                lambda judge=judge, read_json=read_json, values=values: [judge(read_json(v)) for v in values],
                count,
            )
            line += f"  judged in Python {judged_rate:>9,.0f}/s"
        print(line)


def measure_rate(run: Callable[[], object], count: int) -> float:
    """Return the records in a second of CPU time, of the fastest of some runs."""
    durations = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        durations.append(time.process_time() - start)
    return count / min(durations)


if __name__ == "__main__":
    main()
