-- by_id
SELECT number FROM owners
WHERE namespace = :namespace AND kind = :kind AND id = :id AND expired_at IS NULL;

-- held
SELECT id, path FROM owners
WHERE namespace = :namespace AND kind = :kind AND id IN (SELECT value FROM json_each(:ids)) AND expired_at IS NULL
UNION ALL SELECT id, path FROM owners
WHERE namespace = :namespace AND kind = :kind AND path IN (SELECT value FROM json_each(:paths)) AND path != ''
    AND expired_at IS NULL;

-- by_path
SELECT number FROM owners
WHERE namespace = :namespace AND kind = :kind AND path = :path AND path != '' AND expired_at IS NULL;

-- owner
SELECT kind, tags, expired_at, id FROM owners WHERE number = :number AND namespace = :namespace;

-- of_owner
namespace = :namespace AND number IN (SELECT number FROM passages WHERE namespace = :namespace AND owner = :owner);

-- texts
SELECT p.number, {text:p} FROM passages p WHERE p.namespace = :namespace AND p.owner = :owner;

-- drop_tags
DELETE FROM owner_tags WHERE namespace = :namespace AND owner = :owner AND tag IN (SELECT value FROM json_each(:tags));

-- promote
UPDATE memories SET is_latest = 1
WHERE namespace = :namespace
    AND owner = (SELECT max(owner) FROM memories WHERE namespace = :namespace AND id = :id);

-- update_owner
UPDATE owners SET {owners:=}, change = :change, created_at = :created_at
WHERE namespace = :namespace AND number = :number;
