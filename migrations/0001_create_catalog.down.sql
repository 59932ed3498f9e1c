DROP TABLE iceberg_namespace_properties;
DROP TABLE iceberg_tables;
DROP TABLE warehouse;
