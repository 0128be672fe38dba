"""The shared index, in Redis or Valkey."""
