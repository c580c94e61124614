"""Kubernetes: access, the client, and the state of pods."""
