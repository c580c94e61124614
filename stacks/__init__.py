"""Configuration of each environment, and what completes that of a cluster on this machine."""
