"""Hooks of jobs: what slurmd runs as root before the first step of a job on the node, and after its last one."""
