"""What listens, who may call it, and whether anything listens that is not declared."""
