"""Draining nodes: the pure planner. It decides what to do from what slurmctld says, and does nothing itself."""
