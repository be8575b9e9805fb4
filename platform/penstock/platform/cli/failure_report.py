"""What a command prints when it fails in user code or in Spark: one line, and the traceback of the user's files."""


def describe_failure(error: Exception) -> str | None:
    """Return the text for an error of Penstock, of user code, or of Spark; None for a fault of Penstock itself."""
    # Imported here, because most commands neither fail nor need the engine.
    from penstock.core.errors import PenstockError
    from penstock.engine.host.error_report import describe_user_traceback, summarize_error

    traceback_text = describe_user_traceback(error)
    details = f"\n{traceback_text}" if traceback_text else ""
    if isinstance(error, PenstockError):
        return f"{error}{details}"
    is_of_spark = type(error).__module__.startswith(("pyspark.", "py4j."))
    return f"{summarize_error(error)}{details}" if traceback_text or is_of_spark else None
