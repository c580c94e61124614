"""Configuration files, brought into force everywhere, or restored."""
