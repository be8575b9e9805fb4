"""One's own functions of a pipeline that was read anew, on their way to Spark's Python workers."""

import sys

from pyspark import cloudpickle

from penstock.engine.user_modules import find_user_modules


def pickle_modules_by_value(pipeline: str) -> None:
    """Have functions of a pipeline's own modules travel to Spark's Python workers with their code.

    Workers outlive a stream and remember modules: by name they would run what was in the files before.
    """
    for name in find_user_modules(pipeline):
        if module := sys.modules.get(name):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # it has no types
