"""Build the static embedding table that ships with Commonplace from a public transformer; needs NumPy alone."""
