"""The command line: it parses, calls the engine and renders, and has no logic of its own for storage or search."""
