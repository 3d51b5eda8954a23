"""The command line: parses, calls the engine, renders; no rule about memory lives here."""
