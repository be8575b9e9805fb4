"""Column scans of Avro records, compared with fastavro."""

import random

from tests.ingestion.avro_contracts import ODD_CONTRACT, make_codec

from penstock.ingestion.contracts.avro_codec import AvroCodec
from penstock.ingestion.contracts.avro_columns import AvroColumnScan
from penstock.ingestion.errors import InvalidRecordError


def make_odd_record(rng: random.Random) -> dict[str, object]:
    words = ["", "a", "wört", "名", "x" * 200]
    return {
        "text": rng.choice(words),
        "maybe": rng.choice([None, *words]),
        "many": rng.choice([None, [], rng.choices(words, k=3)]),
        "deep": [[rng.randint(-(2**31), 2**31 - 1)] * rng.randrange(3) for _ in range(rng.randrange(3))],
        "yes": rng.random() < 0.5,
        "at": rng.randint(-(10**12), 10**13),
        "small": rng.choice([None, 0.5]),
    }


def test_a_column_scan_accepts_valid_records_and_none_that_fastavro_refuses():
    rng, codec = random.Random(11), make_codec(ODD_CONTRACT)
    records = [make_odd_record(rng) for _ in range(3_000)]
    values = [codec.encode(record) for record in records]
    columns = AvroColumnScan(values, ODD_CONTRACT.fields, 5)
    assert columns.valid_mask.all()
    assert [key.decode() for key in columns.key_texts(ODD_CONTRACT.get_field("text"))] == [
        record["text"] for record in records
    ]
    damaged = [damage_value(value, rng) for value in values]
    valid = AvroColumnScan(damaged, ODD_CONTRACT.fields, 5).valid_mask.tolist()
    assert any(valid)
    assert not [
        v for v, is_valid in zip(damaged, valid, strict=True) if is_valid and not is_decodable(codec, v)
    ]


def damage_value(value: bytes, rng: random.Random) -> bytes:
    index = rng.randrange(5, len(value))
    kind = rng.randrange(3)
    if kind == 0:
        return value[:index] + bytes([rng.randrange(256)]) + value[index + 1 :]
    return value[:index] + (b"" if kind == 1 else rng.randbytes(2)) + value[index + (kind == 1) :]


def is_decodable(codec: AvroCodec, value: bytes) -> bool:
    try:
        codec.decode(value)
    except InvalidRecordError:
        return False
    return True
