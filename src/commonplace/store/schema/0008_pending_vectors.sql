-- Passages whose vectors are made after they were stored have empty ones until then. docs/formats/store.md explains it.

CREATE INDEX passage_vectors_pending ON passage_vectors (number) WHERE length(vector) = 0;
