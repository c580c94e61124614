"""Validation: from what a user wrote to a checked spec, or to all of its problems in our words."""
