"""From judged records to partial aggregates, in one Spark job."""
