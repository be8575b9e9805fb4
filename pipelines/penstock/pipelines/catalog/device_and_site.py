"""Two aggregations of one topic by different keys, in one pass: by device and by site."""

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_watermark, count, every, fixed, max_, mean, quantiles, read

sensors = read("sensors", idle_after="10 seconds")
early = after_watermark(early=every("10 seconds"))

device_and_site = (
    sensors.key("device")
    .aggregate(temperature=mean("temperature"), readings=count())
    .window(fixed("1 minute"))
    .trigger(early, lateness="10 minutes")
    .accumulation("retracting")
    .write("device_and_site", mode="latest")
    .also(
        sensors.key("site")
        .aggregate(warmest=max_("temperature"), half=quantiles("temperature", 0.5), readings=count())
        .window(fixed("2 minutes"))
        .trigger(early, lateness="10 minutes")
        .accumulation("retracting")
        .write("site_minutes", mode="latest")
    )
)

demo = Demo(rate=10)
