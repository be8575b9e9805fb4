"""Operators: partials, stored state, watermark and clock in; changed state and panes out. No Spark."""
