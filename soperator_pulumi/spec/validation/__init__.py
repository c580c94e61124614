"""Validation: from a user's description to a checked spec, or to all of its problems in our words."""
