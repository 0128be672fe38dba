"""How candidates are found: one module for each METHOD."""
