"""Objects of Kubernetes as both engines handle them: connection, conversion, ownership, provider settings."""
