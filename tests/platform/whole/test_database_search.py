"""The search of a database finds values in every stored form."""

import uuid
import zlib

import pytest
from sqlalchemy import NullPool, create_engine, text
from tests.platform.conftest import Postgres
from tests.platform.whole.database_search import find_tables_with_values

pytestmark = pytest.mark.whole  # a PostgreSQL server


def test_a_value_is_found_in_text_json_and_compressed_bytes(postgres: Postgres) -> None:
    address = postgres.database(f"searched_{uuid.uuid4().hex}")
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE body (id int, body text)",
            "CREATE SCHEMA penstock",
            "CREATE TABLE penstock.documents (document jsonb)",
            "CREATE TABLE snapshots (body bytea)",
            "CREATE TABLE innocent (body text)",
            "INSERT INTO body VALUES (1, 'some canary-81 in a row')",
            """INSERT INTO penstock.documents VALUES ('{"password": "canary-81"}')""",
            "INSERT INTO innocent VALUES ('nothing')",
        ):
            connection.exec_driver_sql(statement)
        packed = {"packed": zlib.compress(b"canary-81 in a snapshot")}
        connection.execute(text("INSERT INTO snapshots VALUES (:packed)"), packed)
    assert set(find_tables_with_values(address, {b"canary-81"})) == {
        "public.body",
        "penstock.documents",
        "public.snapshots",
    }
