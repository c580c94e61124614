"""Types of fields, checked and parsed from text."""
