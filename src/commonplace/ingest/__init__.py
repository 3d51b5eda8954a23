"""The write path: files and texts into owners, passages, vectors, and the store's changes into the index."""
