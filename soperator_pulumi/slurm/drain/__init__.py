"""Planner of drains: pure decisions from the state of slurmctld."""
