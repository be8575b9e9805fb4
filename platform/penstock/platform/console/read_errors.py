"""Errors of what the console reads: it shows them, and goes on."""

from confluent_kafka import KafkaException
from deltalake.exceptions import DeltaError
from sqlalchemy.exc import DBAPIError

from penstock.core.errors import PenstockError

READ_ERRORS = (PenstockError, DBAPIError, DeltaError, KafkaException, OSError)


def describe_read_error(error: BaseException) -> str:
    """Return what could not be read, and what to do."""
    match error:
        case PenstockError():
            return str(error)
        case DBAPIError():
            cause = str(error.orig).partition("\n")[0]
            return f"The control store does not answer ({cause}). Check its server; the console keeps trying."
        case KafkaException():
            return f"The broker does not answer ({error}). Check `penstock status`; the console keeps trying."
        case _:
            return f"Something cannot be read: {error}. The console keeps trying."
