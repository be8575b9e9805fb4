"""Test pipelines: give records and a clock, and compare the rows that a pipeline writes.

```python
from penstock.testing import PipelineDriver, utc

def test_revenue_is_summed_by_country_and_minute():
    driver = PipelineDriver("orders_minute", clock="2026-01-01T12:00:00Z")
    driver.send({"id": "1", "country": "DE", "amount": 10.0, "ordered_at": utc("2026-01-01T12:00:05Z")})
    driver.run_batch()
    driver.end_input()
    assert driver.latest(columns=("country", "revenue")) == [{"country": "DE", "revenue": 10.0}]
```

The driver runs in this process, without Kafka and usually without Spark, so a case takes milliseconds and a
breakpoint in your functions works. The page is `pipelines/docs/testing.md`.
"""

from penstock.testing.pipeline_driver import BackendName, DrivenBatch, PipelineDriver
from penstock.testing.times import TimeLike, utc

__all__ = ["BackendName", "DrivenBatch", "PipelineDriver", "TimeLike", "utc"]
