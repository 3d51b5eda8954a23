-- Define which namespaces a transaction sees in PostgreSQL; see rights.py.
CREATE OR REPLACE FUNCTION commonplace_enter(scope text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('commonplace.scope', scope, true);
    PERFORM set_config('commonplace.spaces', CASE WHEN scope = '*' THEN '*' ELSE coalesce((
        SELECT array_agg(number)::text FROM namespaces WHERE left(scope, 1) = '=' AND name IN (
            substr(scope, 2), E'\x1fentity\x1f' || substr(scope, 2), E'\x1frelation\x1f' || substr(scope, 2)
        )
    ), '{}') END, true);
END $$;

CREATE OR REPLACE FUNCTION enter_new_namespace() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('commonplace.spaces') != '*' THEN
        PERFORM set_config(
            'commonplace.spaces', (current_setting('commonplace.spaces')::bigint[] || NEW.number)::text, true
        );
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER enter_new_namespace AFTER INSERT ON namespaces
FOR EACH ROW EXECUTE FUNCTION enter_new_namespace();

-- The setting is read once per statement, not per row; planning that is the largest cost here.
DROP POLICY IF EXISTS one_namespace ON namespaces;
CREATE POLICY one_namespace ON namespaces
USING (
    (SELECT current_setting('commonplace.scope', true))
        = ANY (ARRAY['*', '=' || regexp_replace(name, E'^\x1f(entity|relation)\x1f', '')])
);
ALTER TABLE namespaces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
