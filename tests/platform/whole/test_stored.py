"""The search itself: a value is found in every form in which Dagster and the control store keep things."""

import uuid
import zlib

import pytest
from sqlalchemy import NullPool, create_engine, text
from tests.platform.conftest import Postgres
from tests.platform.whole.stored import tables_holding

pytestmark = pytest.mark.whole  # a PostgreSQL server


def test_a_value_is_found_as_text_in_json_and_compressed(postgres: Postgres) -> None:
    address = postgres.database(f"searched_{uuid.uuid4().hex}")
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as connection:
        for order in (
            "CREATE TABLE body (id int, body text)",
            "CREATE SCHEMA penstock",
            "CREATE TABLE penstock.told (told jsonb)",
            "CREATE TABLE snapshots (body bytea)",
            "CREATE TABLE innocent (body text)",
            "INSERT INTO body VALUES (1, 'some canary-81 in a row')",
            """INSERT INTO penstock.told VALUES ('{"password": "canary-81"}')""",
            "INSERT INTO innocent VALUES ('nothing')",
        ):
            connection.exec_driver_sql(order)
        packed = {"packed": zlib.compress(b"canary-81 in a snapshot")}
        connection.execute(text("INSERT INTO snapshots VALUES (:packed)"), packed)
    assert set(tables_holding(address, {b"canary-81"})) == {
        "public.body",
        "penstock.told",
        "public.snapshots",
    }
