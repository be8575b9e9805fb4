"""What Spark is told, so that it reads tables where they are."""

from penstock.pipelines.store.address import Address
from penstock.pipelines.store.place import Place

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
AS_AWS_FINDS_KEYS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""Hadoop's own way knows no profiles, and everything else here does."""


def reading_settings(place: Place) -> dict[str, str]:
    """Spark's settings for reading below a place; nothing for a folder. It wants the jars of the set `store`."""
    if not isinstance(place, Address):
        return {}
    told = {"fs.s3.impl": S3A, "fs.s3a.impl": S3A, "fs.s3a.aws.credentials.provider": AS_AWS_FINDS_KEYS}
    if place.store.region:
        told["fs.s3a.endpoint.region"] = place.store.region
    if place.store.endpoint:
        # Stores of others know their buckets by paths: a name of its own would have to be resolved.
        told |= {"fs.s3a.endpoint": place.store.endpoint, "fs.s3a.path.style.access": "true"}
    return {f"spark.hadoop.{name}": value for name, value in told.items()}
