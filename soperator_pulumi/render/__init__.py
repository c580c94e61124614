"""Text of files from a spec: pure functions, with the same text for the same spec."""
