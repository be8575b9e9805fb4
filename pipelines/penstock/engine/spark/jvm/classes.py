"""The jar of the engine's Java classes, and the way from Python to them.

`make jvm` builds the jar of the sources beside it. The session puts it on the class path of the driver.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

log = logging.getLogger(__name__)

SPARK_CLASSES_JAR = Path(__file__).with_name("penstock-spark.jar")


def share_classes(session: "SparkSession") -> None:
    """Let the executors of a cluster fetch the jar; those of `local` share the JVM of the driver."""
    context: Any = session.sparkContext
    if find_parser_class(session) is None:
        log.warning("Spark runs without %s; JSON is parsed more slowly", SPARK_CLASSES_JAR.name)
    elif not context.master.startswith("local"):
        context._jsc.addJar(str(SPARK_CLASSES_JAR))  # noqa: SLF001


def find_parser_class(session: "SparkSession") -> Any | None:
    """Return the Java class of the record parser; None in a JVM that was started without the jar."""
    from py4j.java_gateway import JavaClass

    jvm: Any = session._jvm  # noqa: SLF001
    found = jvm.penstock.json.JsonRecordParser
    return found if isinstance(found, JavaClass) else None


def invoke_method(
    session: "SparkSession", target: Any, method: str, arguments: "Sequence[Column]", result_ddl: str
) -> "Column":
    """Return the column of what a method of a serializable Java object returns; null if an argument is null.

    Spark compiles the call into its own code. The method takes and returns values in Spark's internal form.
    """
    from pyspark.sql.classic.column import Column

    jvm: Any = session._jvm  # noqa: SLF001
    to_seq, spark_sql = jvm.PythonUtils.toSeq, jvm.org.apache.spark.sql
    expressions, columns = spark_sql.catalyst.expressions, spark_sql.classic.ExpressionUtils
    literal = expressions.Literal(target, spark_sql.types.ObjectType(target.getClass()))
    values: list[Any] = [columns.expression(argument._jc) for argument in arguments]  # noqa: SLF001
    result_type = spark_sql.types.DataType.fromDDL(result_ddl)
    propagates_null = returns_null = is_deterministic = True
    call = expressions.objects.Invoke(
        literal,
        method,
        result_type,
        to_seq(values),
        to_seq([]),
        propagates_null,
        returns_null,
        is_deterministic,
    )
    return Column(columns.column(call))
