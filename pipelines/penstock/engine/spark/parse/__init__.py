"""From the bytes of a topic to judged records."""
