"""Deployments that are recorded, not made: programs run against mocks, and the manifests that follow."""
