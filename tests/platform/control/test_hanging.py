"""A PostgreSQL that hangs: nobody waits for it for ever, and it is asked again."""

import uuid

import pytest
from sqlalchemy.exc import OperationalError
from tests.platform.conftest import Postgres

from penstock.engine.host.control import DesiredRunState
from penstock.platform.control import open_control_store
from penstock.platform.errors import ControlError

pytestmark = pytest.mark.whole  # a PostgreSQL server


def test_a_statement_is_given_up_and_the_next_is_answered_once_the_server_is_awake(
    postgres: Postgres,
) -> None:
    store = open_control_store(
        f"{postgres.database(f'asleep_{uuid.uuid4().hex}')}?connect_timeout=2", query_timeout_s=0.5
    )
    wish = store.set_desired_state("s", DesiredRunState.RUNNING, 0)
    with store.engine.connect() as connection, postgres.asleep():
        with pytest.raises(
            OperationalError, match=r"did not answer within 0\.5 s; check whether it hangs"
        ) as given_up:
            connection.exec_driver_sql("SELECT 1")
        assert given_up.value.connection_invalidated
    assert store.read_desired_states() == {"s": wish}
    store.close()


def test_a_store_that_hangs_cannot_be_opened_and_that_is_one_sentence(postgres: Postgres) -> None:
    address = postgres.database(f"asleep_{uuid.uuid4().hex}")
    with (
        postgres.asleep(),
        pytest.raises(ControlError, match=r"cannot open the control store .*timeout expired") as told,
    ):
        open_control_store(f"{address}?connect_timeout=2")
    assert len(str(told.value).splitlines()) == 1
