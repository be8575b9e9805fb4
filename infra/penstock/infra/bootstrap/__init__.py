"""Making a checkout ready to run, with nothing installed yet: the standard library only."""
