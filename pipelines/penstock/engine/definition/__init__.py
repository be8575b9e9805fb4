"""What every definition is made of: checked arguments, durations, conditions and user functions."""
