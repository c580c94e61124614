"""Models of what a user may say about a cluster: frozen, documented, checked. No resource is created here.

The server of dynamic resources needs a few of the models, and would load all of them if they were imported here.
"""
