"""The log of dropped pages, in both directions, and the files beside it."""
