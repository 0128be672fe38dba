"""Noise: what changes on a page although nobody has changed it.  It is measured, never assumed."""
