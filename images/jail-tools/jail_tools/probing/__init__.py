"""Tests a jail's storage, in a directory of its own, before the volume is filled."""
