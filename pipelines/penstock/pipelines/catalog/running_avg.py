"""The running mean of each key in a global window, over a topic named `avg` as in many courses."""

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_count, count, global_window, mean, read, repeatedly

running_avg = (
    read("avg")
    .key("key")
    .aggregate(mean=mean("value"), values=count())
    .window(global_window())
    .trigger(repeatedly(after_count(1)))
    .write("running_avg", mode="latest")
)

demo = Demo(rate=1, last="1 minute", step="5 seconds")
