"""How the model of the embedder `minilm` is made of all-MiniLM-L6-v2; docs/model.md tells."""
