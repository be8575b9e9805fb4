"""The last 100 readings of each device, after every tenth reading: a window that slides by records, not by time."""

from penstock.stream import count, max_, mean, min_, read, records, sliding_by

last_readings = (
    read("sensors", idle_after="5 seconds")
    .key("device")
    .aggregate(
        mean=mean("temperature"), readings=count(), least=min_("temperature"), most=max_("temperature")
    )
    .window(sliding_by(evict=records(100), trigger=records(10)))
    .write("last_readings", mode="log")
)
