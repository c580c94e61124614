"""The GPU driver of a worker's container: found in its mounts, and laid out for jobs."""
