"""Text analysis: tokens, chunks, sentences, similarity. Pure functions."""
