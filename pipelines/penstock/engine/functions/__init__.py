"""What user functions are given and what they return."""
