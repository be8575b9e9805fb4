"""Windows that the time of a record alone decides: fixed, sliding, calendar, global."""
