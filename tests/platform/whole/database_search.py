"""Search all tables of a PostgreSQL database for secrets."""

import zlib
from collections.abc import Collection, Iterator

from sqlalchemy import Engine, NullPool, create_engine, inspect

SYSTEM_SCHEMAS = {"information_schema"}


def find_tables_with_values(address: str, values: Collection[bytes]) -> list[str]:
    """List the tables that contain a value: as text, in JSON, as bytes, or compressed by Dagster."""
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    return [
        table
        for table in _tables(engine)
        if any(_holds(content, values) for content in _read_values(engine, table))
    ]


def _tables(engine: Engine) -> list[str]:
    inspector = inspect(engine)
    schemas = [name for name in inspector.get_schema_names() if name not in SYSTEM_SCHEMAS]
    return [f"{schema}.{table}" for schema in schemas for table in inspector.get_table_names(schema)]


def _read_values(engine: Engine, table: str) -> Iterator[bytes]:
    with engine.connect() as connection:
        for row in connection.exec_driver_sql(f"SELECT * FROM {table}"):
            for value in row:
                yield from _decode_value(value)


def _decode_value(value: object) -> Iterator[bytes]:
    if not isinstance(value, bytes):
        yield str(value).encode()
        return
    yield value
    try:
        yield zlib.decompress(value)
    except zlib.error:
        return


def _holds(content: bytes, values: Collection[bytes]) -> bool:
    return any(value in content for value in values)
