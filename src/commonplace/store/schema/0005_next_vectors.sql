-- The vectors of an embedder that is to take the place of the present one. docs/formats/store.md explains it.

CREATE TABLE next_vectors (
    number INTEGER PRIMARY KEY REFERENCES passages (number) ON DELETE CASCADE,
    vector BLOB NOT NULL
);
