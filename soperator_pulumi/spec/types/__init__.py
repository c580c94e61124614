"""Types of fields: text that people write, checked and understood."""
