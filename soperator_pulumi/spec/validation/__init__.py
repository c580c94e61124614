"""Validation: a user's description becomes a checked spec, or an error with all of its problems, in clear words."""
