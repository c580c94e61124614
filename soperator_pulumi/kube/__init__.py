"""Kubernetes: access, the client, and what pods say of themselves."""
