"""Kubernetes objects as both engines handle them: connection, conversion, ownership, provider settings."""
