"""The read path: retrieve, fuse, re-rank, filter, calibrate; it never writes."""
