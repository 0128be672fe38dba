"""Requests as the filter sees them: what they carry, whom they may ask, how they are sent, and what comes back."""
