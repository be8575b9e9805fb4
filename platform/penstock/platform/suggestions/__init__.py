"""What somebody means who begins to type: looked up in the table of newest suggestions, and served as a page."""
