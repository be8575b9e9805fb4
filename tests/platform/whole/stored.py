"""Searching a database of PostgreSQL, whatever tables are in it, for values that must not be in them."""

import zlib
from collections.abc import Collection, Iterator

from sqlalchemy import Engine, NullPool, create_engine, inspect

OF_THE_SERVER = {"information_schema"}


def tables_holding(address: str, values: Collection[bytes]) -> list[str]:
    """The tables in which any of the values stands: as text, in JSON, as bytes, or in what Dagster compresses."""
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    return [table for table in _tables(engine) if any(_holds(one, values) for one in _stored(engine, table))]


def _tables(engine: Engine) -> list[str]:
    inspector = inspect(engine)
    schemas = [name for name in inspector.get_schema_names() if name not in OF_THE_SERVER]
    return [f"{schema}.{table}" for schema in schemas for table in inspector.get_table_names(schema)]


def _stored(engine: Engine, table: str) -> Iterator[bytes]:
    with engine.connect() as connection:
        for row in connection.exec_driver_sql(f"SELECT * FROM {table}"):
            for value in row:
                yield from _readings(value)


def _readings(value: object) -> Iterator[bytes]:
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
