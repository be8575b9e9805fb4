"""One's own functions of a pipeline that was read anew, on their way to Spark's Python workers."""

import sys

from pyspark import cloudpickle

from penstock.pipelines.catalog import module_of


def send_by_value(pipeline: str) -> None:
    """Have functions of a pipeline's file travel to Spark's Python workers with their code.

    Workers outlive a stream and remember modules: by name they would run what was in the file before.
    """
    if module := sys.modules.get(module_of(pipeline)):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # it has no types
