"""The HTTP server: the engine's calls as a REST API with OpenAPI, and the Model Context Protocol over HTTP."""
