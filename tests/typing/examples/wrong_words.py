"""Definitions that type checkers refuse. A comment at the end of each wrong line has a part of the error."""

from penstock.stream import (
    after_watermark,
    calendar,
    count,
    every,
    first,
    fixed,
    join,
    mean,
    read,
    sliding,
    sum_,
    tumbling,
)

orders = read("cards").key("country")
minutes = orders.aggregate(n=count()).window(fixed("1 minute"))

read("cards", future_records="drop")  # expect: "Literal['drop']" is not assignable
read("cards", files="/data", format="xml")  # expect: "Literal['xml']" is not assignable
read("cards", idle_aftr="1 minute")  # expect: No parameter named "idle_aftr"
read(3)  # expect: "Literal[3]" is not assignable
orders.groupBy("country")  # expect: Cannot access attribute "groupBy"
orders.aggregate(sum_("amount"))  # expect: is not assignable to type "Never"
orders.aggregate(n="count()")  # expect: "Literal['count()']" is not assignable
orders.aggregate(n=count)  # expect: is not assignable to "Aggregate"
orders.window("1 minute")  # expect: is not assignable to "Window"
orders.window(fixed("1 minute", time="wall"))  # expect: "Literal['wall']" is not assignable
orders.window(sliding("1 hour"))  # expect: Argument missing for parameter "period"
orders.window(calendar("year"))  # expect: "Literal['year']" is not assignable
orders.window(tumbling("1 minute"))  # expect: is not assignable to "ClosePolicy"
orders.aggregate(place=first("country", order="newest"))  # expect: "Literal['newest']" is not assignable
minutes.trigger("10 seconds")  # expect: is not assignable to "Trigger"
minutes.trigger(after_watermark(early="10 seconds"))  # expect: is not assignable to "Trigger"
minutes.trigger(every("10 seconds"), on_time_pane="never")  # expect: "Literal['never']" is not assignable
minutes.trigger(every("10 seconds"), final_pane="maybe")  # expect: "Literal['maybe']" is not assignable
minutes.trigger(every("10 seconds"), may_finish="yes")  # expect: is not assignable to "bool"
minutes.accumulation("retract")  # expect: "Literal['retract']" is not assignable
minutes.write("minutes", mode="upsert")  # expect: "Literal['upsert']" is not assignable
inputs = minutes.inputs  # expect: Cannot access attribute "inputs"
mean(1.5)  # expect: is not assignable to "str"
join(read("clicks"), read("cards"), by="user", how="outer")  # expect: "Literal['outer']" is not assignable
join(read("clicks"), "cards", by="user")  # expect: is not assignable to "Pipeline"
