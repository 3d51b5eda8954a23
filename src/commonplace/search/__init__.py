"""Search: retrieve, fuse, re-rank, filter, calibrate. Read-only."""
