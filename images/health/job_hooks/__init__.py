"""Hooks of jobs: programs that slurmd runs as root before a job's first step on the node, and after its last one."""
