"""The command line: parses, calls the engine, renders. It holds no rule about what is stored or found."""
