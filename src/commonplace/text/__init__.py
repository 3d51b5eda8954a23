"""Text into words, tokens and chunks: pure functions that know no file and no setting."""
