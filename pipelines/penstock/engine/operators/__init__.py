"""The fold: state, partials, watermark and clock in; changed state and panes out. Knows no Spark."""
