"""Long checks: jobs that measure idle nodes, started by one CronJob per check, and drains of failed nodes."""
