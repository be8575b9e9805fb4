"""Windows that depend only on a record's time: fixed, sliding, calendar, global."""
