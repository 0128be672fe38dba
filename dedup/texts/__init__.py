"""What pages said: how it is kept small in a file, and what differs between two texts."""
