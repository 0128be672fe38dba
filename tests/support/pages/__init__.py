"""Generated pages: how pages change and stay the same, and how different ones look alike."""
