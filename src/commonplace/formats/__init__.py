"""Foreign formats, each translated purely to and from our types."""
