"""Models of a cluster's description: immutable, documented and checked. No module here creates a resource.

This module imports no model, as the server of dynamic resources needs only a few of them.
"""
