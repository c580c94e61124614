"""From a spec to the text of files: pure functions, the same text for the same spec."""
