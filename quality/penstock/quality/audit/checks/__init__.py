'''The checks of `penstock audit`. Each check is one module, found by discovery.

To add a check:

1. Write a function in a module of this package, and mark it with the name of the check in reports:

   | decorator | the function takes | it runs |
   |---|---|---|
   | `@stream_check("name", order=...)` | the `AuditScope` of a stream | first |
   | `@topic_check("name", order=...)` | the `TopicView` of a topic | then, for each topic that the stream reads |
   | `@result_check("name", order=...)` | the scope, the view of each topic, and a `Sample` | last |

   Checks of one decorator run in the order of their numbers; a check without a number runs after those of Penstock.
2. Return `judge_differences(differences, success_text)`, with an `AuditDifference` for each finding, or
   `unproven_outcome(reason)` if an input is missing. The runner adds the name, and reports errors: a damaged table
   fails the check, a table or broker that is not available makes it unproven.
3. Keep helpers of one check in its module, and helpers of several checks beside this package.
4. Damage a table in a test in `tests/quality/audit`, and expect the difference.

A check of your own is a function in your own package, installed as an entry point of the group
`penstock.audit_checks`. Give the entry point the name of the check.

```python
@stream_check("batch sizes")
def check_batch_sizes(scope: AuditScope) -> CheckOutcome:
    """No batch read more records than the limit."""
    large_batches = scope.ledger.filter(pc.greater(scope.ledger.column("read"), LIMIT)).to_pylist()
    differences = (
        AuditDifference(f"batch {row['batch_id']}", f"read {row['read']} records") for row in large_batches
    )
    return judge_differences(differences, f"no batch read more than {LIMIT} records of a partition")
```
'''
