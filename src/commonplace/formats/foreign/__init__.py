"""Other systems' memory files, each read into one neutral form; nothing here writes them."""
