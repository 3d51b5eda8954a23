-- Create the tables that recall reads in PostgreSQL, replacing those of another version; see postings.py.
DROP TABLE IF EXISTS passage_terms;
DROP TABLE IF EXISTS passage_signs;
DROP TABLE IF EXISTS segments;
DROP TABLE IF EXISTS postings;
DROP FUNCTION IF EXISTS drop_postings, follow_vector, signs_of CASCADE;  -- with the triggers

CREATE TABLE passage_terms (
    namespace bigint NOT NULL REFERENCES namespaces ON DELETE CASCADE, number bigint NOT NULL,
    language text NOT NULL, terms bytea NOT NULL, PRIMARY KEY (namespace, number)
);
CREATE INDEX passage_terms_by_language ON passage_terms (namespace, language) WHERE language != 'english';

CREATE TABLE passage_signs (
    namespace bigint NOT NULL REFERENCES namespaces ON DELETE CASCADE, number bigint NOT NULL,
    owner bigint NOT NULL, kind text NOT NULL, signs bit varying NOT NULL, next_signs bit varying,
    PRIMARY KEY (namespace, number)
);
CREATE INDEX passage_signs_by_owner ON passage_signs (namespace, owner);

CREATE TABLE segments (
    namespace bigint NOT NULL REFERENCES namespaces ON DELETE CASCADE, start bigint NOT NULL,
    upto bigint NOT NULL, passages bigint NOT NULL, lengths bigint[] NOT NULL, PRIMARY KEY (namespace, start)
);

CREATE TABLE postings (
    namespace bigint NOT NULL, segment bigint NOT NULL, term integer NOT NULL,
    units bytea NOT NULL, PRIMARY KEY (namespace, term, segment)
);
ALTER TABLE postings ALTER units SET STORAGE EXTERNAL;

-- A foreign key would be checked for each of the ten thousand terms of a segment.
CREATE FUNCTION drop_postings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM postings WHERE namespace = OLD.number;
    RETURN NULL;
END $$;
CREATE TRIGGER drop_postings AFTER DELETE ON namespaces FOR EACH ROW EXECUTE FUNCTION drop_postings();

CREATE FUNCTION signs_of(vector bytea) RETURNS bit varying LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE signs text := '';
BEGIN
    FOR place IN 0..length(vector) - 1 LOOP
        signs := signs || CASE WHEN get_byte(vector, place) BETWEEN 1 AND 127 THEN '1' ELSE '0' END;
    END LOOP;
    RETURN signs::bit varying;
END $$;

CREATE FUNCTION follow_vector() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE passage_signs SET next_signs = NULL
        WHERE namespace = OLD.namespace AND number = OLD.number AND next_signs IS NOT NULL;
    ELSIF left(TG_TABLE_NAME, 12) = 'next_vectors' THEN  -- a partition has a number behind it
        UPDATE passage_signs SET next_signs = signs_of(NEW.vector)
        WHERE namespace = NEW.namespace AND number = NEW.number;
    ELSE
        -- Of a live passage only the switch of embedder changes the vector, and its signs are known.
        UPDATE passage_signs SET signs = coalesce(next_signs, signs_of(NEW.vector)), next_signs = NULL
        WHERE namespace = NEW.namespace AND number = NEW.number;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER follow_vector AFTER UPDATE OF vector ON passage_vectors
FOR EACH ROW EXECUTE FUNCTION follow_vector();

CREATE TRIGGER follow_vector AFTER INSERT OR UPDATE OR DELETE ON next_vectors
FOR EACH ROW EXECUTE FUNCTION follow_vector();
