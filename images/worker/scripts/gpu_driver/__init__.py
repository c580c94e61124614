"""The GPU driver of a worker's container: found in its mounts, laid out for jobs."""
