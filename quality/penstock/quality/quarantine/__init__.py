"""Records that were found to be no good: looked at, judged again, repaired, sent once more, or given up."""
