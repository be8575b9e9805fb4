"""A PostgreSQL that hangs: queries time out, and later ones are answered."""

import uuid

import pytest
from sqlalchemy.exc import OperationalError
from tests.platform.conftest import Postgres

from penstock.engine.host.control import DesiredRunState
from penstock.platform.control import open_control_store
from penstock.platform.errors import ControlError

pytestmark = pytest.mark.whole  # a PostgreSQL server


def test_a_statement_times_out_and_the_next_one_is_answered(
    postgres: Postgres,
) -> None:
    store = open_control_store(
        f"{postgres.database(f'asleep_{uuid.uuid4().hex}')}?connect_timeout=2", query_timeout_s=0.5
    )
    desired = store.set_desired_state("s", DesiredRunState.RUNNING, 0)
    with store.engine.connect() as connection, postgres.suspended():
        with pytest.raises(
            OperationalError, match=r"did not answer within 0\.5 s; check whether it hangs"
        ) as raised:
            connection.exec_driver_sql("SELECT 1")
        assert raised.value.connection_invalidated
    assert store.read_desired_states() == {"s": desired}
    store.close()


def test_opening_a_hanging_store_fails_with_one_line(postgres: Postgres) -> None:
    address = postgres.database(f"asleep_{uuid.uuid4().hex}")
    with (
        postgres.suspended(),
        pytest.raises(ControlError, match=r"cannot open the control store .*timeout expired") as raised,
    ):
        open_control_store(f"{address}?connect_timeout=2")
    assert len(str(raised.value).splitlines()) == 1
