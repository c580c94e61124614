"""Text of files rendered from a spec: pure functions that always return the same text for the same spec."""
