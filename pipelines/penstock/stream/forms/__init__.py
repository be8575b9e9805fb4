"""The forms of a pipeline: a definition is written as SQL, YAML or Python, and gives the same plan."""
