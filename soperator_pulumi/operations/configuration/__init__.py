"""Configuration files, brought into force where they are read, or taken back."""
