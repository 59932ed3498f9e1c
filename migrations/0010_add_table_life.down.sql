DROP TABLE outside_reference;
DROP TABLE obsolete_metadata;
DROP VIEW owned_location;
DROP TABLE dropped_object;
DROP TABLE protected_namespace;
ALTER TABLE warehouse DROP COLUMN protected, DROP COLUMN soft_delete_ms;
ALTER TABLE iceberg_tables DROP COLUMN protected;
