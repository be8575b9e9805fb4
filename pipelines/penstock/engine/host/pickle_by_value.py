"""Sends user modules to Spark's Python workers by value."""

import sys

from pyspark import cloudpickle

from penstock.engine.user_modules import find_user_modules


def pickle_modules_by_value(pipeline: str) -> None:
    """Send the functions of a pipeline's user modules to Spark's Python workers with their code.

    Workers outlive a stream and cache modules: by name, they would run the old contents of the files.
    """
    for name in find_user_modules(pipeline):
        if module := sys.modules.get(name):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # it is untyped
