"""Tests a jail's storage, in a separate directory, before the volume is filled."""
