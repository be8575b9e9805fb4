from itertools import islice

import pytest

from penstock.ingestion.contracts import json_codec, load_contract
from penstock.ingestion.generators import GENERATORS, RecordGenerator, SensorGenerator, make_even_send_times

SEND_TIMES = make_even_send_times(1_700_000_000_000, 100)


def take_records(generator: RecordGenerator, first: int, number: int) -> list[object]:
    return list(islice(generator.generate_records(first, SEND_TIMES), number))


@pytest.mark.parametrize("kind", GENERATORS.values())
def test_a_generator_can_start_at_any_record(kind: type):
    assert take_records(kind(seed=7), 0, 3_000)[1_234:2_345] == take_records(kind(seed=7), 1_234, 1_111)


@pytest.mark.parametrize("kind", GENERATORS.values())
def test_another_seed_generates_other_records(kind: type):
    assert take_records(kind(seed=7), 0, 100) != take_records(kind(seed=8), 0, 100)


@pytest.mark.parametrize("kind", GENERATORS.values())
def test_generated_records_are_valid_and_have_unique_ids(kind: type):
    contract = load_contract(kind.topic)
    codec = json_codec(contract)
    records = [codec.decode(codec.encode(record)) for record in take_records(kind(seed=3), 0, 5_000)]
    if contract.id is not None:
        assert len({getattr(record, contract.id) for record in records}) == 5_000


def test_about_one_reading_in_a_hundred_is_late():
    max_out_of_orderness_ms = load_contract("sensors").max_out_of_orderness_ms
    late = sum(
        SEND_TIMES(n) - record.at > max_out_of_orderness_ms
        for n, record in enumerate(take_records(SensorGenerator(seed=1), 0, 10_000))
    )
    assert 60 < late < 140
