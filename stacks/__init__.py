"""Pulumi program and the configuration of each environment."""
