"""A report for the browser, in one file."""
