"""Reading the logs of the stack's programs: entries, filters, folded stack traces."""
