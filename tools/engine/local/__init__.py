"""The local engine: runs deployments if the Pulumi CLI is not installed."""
