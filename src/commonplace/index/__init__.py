"""The index: a projection of a store's change sequence, made to be searched and thrown away at will."""
