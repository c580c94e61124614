"""Types of fields: text, checked and parsed."""
