"""The page: a person looks at the memory in a browser, and changes it once Edit is switched on."""
