"""What tests of jail_tools share."""
