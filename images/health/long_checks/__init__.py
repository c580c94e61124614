"""Long checks: jobs that measure idle nodes, started by a CronJob each, and drains of the nodes that fail."""
