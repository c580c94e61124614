"""Drives the Pulumi CLI through the Automation API."""
