"""Bytes -> tokens: what a page says, and how much of it is read at all."""
