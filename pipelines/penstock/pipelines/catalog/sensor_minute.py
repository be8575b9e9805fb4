"""Mean temperature per device and minute: early results every ten seconds, corrections for an hour."""

from penstock.stream import after_watermark, count, every, fixed, mean, read

sensor_minute = (
    read("sensors", idle_after="10 seconds")
    .key("device")
    .aggregate(temperature=mean("temperature"), readings=count())
    .window(fixed("1 minute"))
    .trigger(after_watermark(early=every("10 seconds")), lateness="1 hour")
    .accumulation("retracting")
    .write("sensor_minute", mode="latest")
    .write("sensor_minute", mode="log")
)
