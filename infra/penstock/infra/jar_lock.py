"""Making the lock of the jars again: `python -m penstock.infra.jar_lock`, or `make lock`.

Spark's jars are named one by one and taken alone, because the wheel already holds what they need. The
broker's are what Kafka's own declaration leads to.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.infra.errors import InfraError, JarLockError
from penstock.infra.ivy import Coordinates, Wanted, fetch, silent
from penstock.infra.jars import LOCK, LockedJar, sha256_of

DELTA = "4.4.0"
KAFKA = "4.3.1"

SPARK_JARS = (
    Coordinates("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    # 4.2.0 of the next two is not published; these work with Spark 4.2.0.
    Coordinates("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    Coordinates("org.apache.spark", "spark-avro_2.13", "4.1.1"),
    Coordinates("org.apache.kafka", "kafka-clients", "3.9.2"),
    Coordinates("org.apache.commons", "commons-pool2", "2.13.1"),
    Coordinates("io.delta", "delta-spark_4.2_2.13", DELTA),
    Coordinates("io.delta", "delta-storage", DELTA),
    Coordinates("io.delta", "delta-kernel-api", DELTA),
    Coordinates("io.delta", "delta-kernel-defaults", DELTA),
    Coordinates("io.delta", "delta-kernel-unitycatalog", DELTA),
    Coordinates("com.globalmentor", "hadoop-bare-naked-local-fs", "0.1.0"),
)

KAFKA_ROOTS = (
    Coordinates("org.apache.kafka", "kafka_2.13", KAFKA),
    # Kafka leaves the choice of what writes its log to whoever runs it.
    Coordinates("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)

# Taken alone too: for reading, writing and describing topics and groups it needs nothing beyond the broker's jars.
# What it declares brings Kafka Connect and a web server, fifty jars more.
TOOLS_JARS = (Coordinates("org.apache.kafka", "kafka-tools", KAFKA),)

HADOOP, AWS = "3.5.0", "2.35.4"
"""The Hadoop of Spark's wheel, and the SDK that it was made with."""

# The parts of the SDK that Hadoop uses, for what it asks for is all of it in one jar, hundreds of MB. Spark's
# wheel has what they stand on.
AWS_PARTS = (
    *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol"),
    *("checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth", "http-auth-aws"),
    *(
        "http-auth-aws-eventstream",
        "http-auth-spi",
        "http-client-spi",
        "identity-spi",
        "json-utils",
        "metrics-spi",
    ),
    *("netty-nio-client", "profiles", "protocol-core", "regions", "retries", "retries-spi", "s3"),
    *("s3-transfer-manager", "sdk-core", "sts", "third-party-jackson-core", "utils", "utils-lite"),
)

# What reads tables in an object store.
STORE_JARS = (
    Coordinates("org.apache.hadoop", "hadoop-aws", HADOOP),
    Coordinates("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.0"),
    Coordinates("software.amazon.eventstream", "eventstream", "1.0.1"),
    Coordinates("org.reactivestreams", "reactive-streams", "1.0.4"),
    *(Coordinates("software.amazon.awssdk", part, AWS) for part in AWS_PARTS),
)


def make_lock(lock: Path = LOCK, repository: str | None = None) -> list[LockedJar]:
    """Fetch every jar anew, and write its coordinates and SHA-256 to the lock, whole or not at all."""
    jars = _hashed(Wanted(SPARK_JARS), "spark", repository)
    jars += _hashed(Wanted(KAFKA_ROOTS, transitive=True), "kafka", repository)
    jars += _hashed(Wanted(TOOLS_JARS), "tools", repository)
    jars += _hashed(Wanted(STORE_JARS), "store", repository)
    _refuse_twins(jars)
    written = lock.with_suffix(".new")
    written.write_text(render(jars), "utf-8")
    written.replace(lock)
    return jars


def render(jars: Iterable[LockedJar]) -> str:
    """Return the text of a lock that holds these jars."""
    lines = sorted(f"{jar.sha256}  {jar.coordinates}  {jar.set}" for jar in jars)
    by_set = sorted(lines, key=lambda line: line.split()[:0:-1])
    return (
        "# Made by `make lock`: SHA-256, Maven coordinates, who needs the jar.\n" + "\n".join(by_set) + "\n"
    )


def _hashed(wanted: Wanted, jar_set: str, repository: str | None) -> list[LockedJar]:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        reason = fetch(wanted, directory, silent, repository)
        if reason:
            raise JarLockError(f"The lock of the {jar_set} jars was not made: {reason}.")
        names = _resolved(directory) if wanted.transitive else list(wanted.jars)
        return [LockedJar(sha256_of(directory / name.file_name), name, jar_set) for name in names]


def _resolved(directory: Path) -> list[Coordinates]:
    """Read what was fetched out of Ivy's cache: organisation/module/ivy-revision.xml, and the jars beside."""
    modules = (path for path in directory.glob("*/*/ivy-*.xml"))
    names = [Coordinates(path.parts[-3], path.parts[-2], path.stem.removeprefix("ivy-")) for path in modules]
    return [name for name in names if (directory / name.file_name).exists()]


def _refuse_twins(jars: Sequence[LockedJar]) -> None:
    names = [jar.file_name for jar in jars]
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise JarLockError(f"Two jars of the lock would have one file name: {', '.join(twins)}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the lock of the jars again, from the command line."""
    parser = argparse.ArgumentParser(prog="python -m penstock.infra.jar_lock", description=main.__doc__)
    parser.add_argument("--repository", help="the address of a Maven mirror; Ivy's default without it")
    try:
        jars = make_lock(repository=parser.parse_args(arguments).repository)
    except InfraError as error:
        print(error, file=sys.stderr)  # noqa: T201  the answer of a command goes to the terminal
        return 1
    print(f"{len(jars)} jars locked in {LOCK.name}")  # noqa: T201  as above
    return 0


if __name__ == "__main__":
    sys.exit(main())
