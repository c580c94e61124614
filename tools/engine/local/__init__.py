"""Plays the engine itself, where the Pulumi CLI is not installed."""
