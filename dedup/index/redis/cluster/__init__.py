"""The shared index over a Redis Cluster: pages and tables spread over its nodes, one key at a time."""
