"""The records of a golden home: in rounds, out of order, some of them late, some sent twice."""

import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

ROUNDS = 6
ROUND_MS = 60_000
START_MS = 1_735_689_600_000 - ROUNDS * ROUND_MS // 2
"""A day ends in the middle of the data, in UTC; in other time zones an hour does."""
READINGS_PER_ROUND = 40
DEVICES = "abcdefg"
MALFORMED = b'{"id": "malformed"'


def write_rounds(folder: Path, seed: int = 1) -> None:
    """Write a file of JSON lines for each topic and round."""
    random = Random(seed)
    sent: list[dict[str, Any]] = []
    for number in range(1, ROUNDS + 1):
        readings = [_make_reading(random, number, index) for index in range(READINGS_PER_ROUND)]
        repeated = random.sample(sent, 3) if sent else []
        late = [
            {**each, "id": f"late-{number}-{each['id']}"} for each in random.sample(sent[:10], 2 * bool(sent))
        ]
        sent += readings
        _write(folder / "readings" / f"{number}.jsonl", _shuffle(random, readings + repeated + late))
        _write(
            folder / "limits" / f"{number}.jsonl",
            [_make_limit(random, number, device) for device in DEVICES[:5]],
        )


def _write(file: Path, records: Iterable[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(each)}\n" for each in records), "utf-8")


def _make_reading(random: Random, number: int, index: int) -> dict[str, Any]:
    reading: dict[str, Any] = {
        "id": f"{number}-{index}",
        "device": random.choice(DEVICES),
        "at": _make_time(random, number),
        "phase": random.choices(("measure", "start", "end"), (6, 2, 1))[0],
    }
    if random.random() < 0.9:
        reading["value"] = random.randrange(-400, 400) / 8
    return reading


def _make_limit(random: Random, number: int, device: str) -> dict[str, Any]:
    limit = random.randrange(100) / 4
    return {"id": f"{number}-{device}", "device": device, "at": _make_time(random, number), "highest": limit}


def _make_time(random: Random, number: int) -> int:
    return START_MS + number * ROUND_MS + random.randrange(-20_000, ROUND_MS)


def _shuffle(random: Random, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return random.sample(records, len(records))
