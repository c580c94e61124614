"""Helpers that the tests of jail_tools share."""
