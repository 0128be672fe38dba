"""The embedded index: in memory, or in a file."""
