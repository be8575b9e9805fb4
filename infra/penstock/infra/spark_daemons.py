"""How Spark's own servers are started, wherever they run: the properties that close what asks for no secret."""

MASTER_PROPERTIES = {
    # The REST server (port 6066) runs any program that it is sent. It asks for no secret, not even from a web page,
    # and Spark 4.1 turned it on (SPARK-51165).
    "spark.master.rest.enabled": "false",
    # The pages of master and workers have no log-in.
    "spark.ui.killEnabled": "false",
}
"""Properties of each master and worker."""

DAEMON_OPTIONS_VARIABLE = "SPARK_DAEMON_JAVA_OPTS"
"""The variable from which `spark-class` takes Java options of a master or worker."""


def daemon_java_options() -> str:
    """Return the properties as Java options, for daemons without a properties file."""
    return " ".join(f"-D{name}={value}" for name, value in MASTER_PROPERTIES.items())
