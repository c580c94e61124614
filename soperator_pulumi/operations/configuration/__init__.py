"""Configuration files, made effective everywhere, or restored."""
