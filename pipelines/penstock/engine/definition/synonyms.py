"""The words of other systems for arguments and sections of definitions, and the word that Penstock has for each.

A message about an unknown word suggests the word of Penstock. Synonyms are not accepted, so that each definition is
written in one vocabulary.
"""

from collections.abc import Mapping

ARGUMENT_SYNONYMS: Mapping[str, str] = {
    # read
    "timestamp": "event_time",
    "timefield": "event_time",
    "watermark": "max_out_of_orderness",
    "watermarkdelay": "max_out_of_orderness",
    "boundedoutoforderness": "max_out_of_orderness",
    "outoforderness": "max_out_of_orderness",
    "delay": "max_out_of_orderness",
    "idleness": "idle_after",
    "idletimeout": "idle_after",
    "withidleness": "idle_after",
    "maxahead": "max_future_skew",
    "ahead": "max_future_skew",
    # trigger
    "allowedlateness": "lateness",
    "late": "lateness",
    # windows
    "slide": "period",
    "hop": "period",
    "every": "period",
    "timezone": "zone",
    "tz": "zone",
    "timeout": "gap",
    # join and write
    "type": "how",
    "on": "by",
    "outputmode": "mode",
}
"""Names of arguments, in lower case and without `_`."""

VERB_SYNONYMS: Mapping[str, str] = {
    # inputs
    "source": "read",
    "from": "read",
    "input": "read",
    "inputs": "read",
    "topic": "read",
    "topics": "read",
    "merge": "union",
    "unionall": "union",
    "cogroup": "union",
    # steps
    "where": "filter",
    "project": "select",
    "mapvalues": "map",
    "withcolumn": "map",
    "transform": "apply",
    "mapinarrow": "arrow",
    "enrich": "lookup",
    "split": "branches",
    "dedup": "deduplicate",
    "dropduplicates": "deduplicate",
    # key, aggregates and windows
    "groupby": "key",
    "keyby": "key",
    "partitionby": "key",
    "agg": "aggregate",
    "aggregates": "aggregate",
    "aggregation": "aggregate",
    "reduce": "aggregate",
    "process": "stateful",
    "transformwithstate": "stateful",
    "windowby": "window",
    "windowinto": "window",
    "windowedby": "window",
    "triggering": "trigger",
    "accumulationmode": "accumulation",
    "accumulate": "accumulation",
    # outputs
    "sink": "write",
    "sinks": "write",
    "to": "write",
    "table": "write",
    "output": "write",
    "writeto": "write",
    "writestream": "write",
    "saveastable": "write",
    "materialize": "write",
    "alias": "named",
    "uid": "named",
}
"""Methods of a pipeline and sections of a YAML definition, in lower case and without `_`."""

MODE_SYNONYMS: Mapping[str, str] = {
    "retraction": "retracting",
    "retractions": "retracting",
    "accumulatingandretracting": "retracting",
    "changelog": "retracting",
    "cumulative": "accumulating",
    "total": "accumulating",
    "delta": "discarding",
    "incremental": "discarding",
}
"""Modes of accumulation, in lower case and without `_`."""
