"""Models of a cluster's description: frozen, documented, checked. No module here creates a resource.

This module imports no model, as the server of dynamic resources needs few of them.
"""
