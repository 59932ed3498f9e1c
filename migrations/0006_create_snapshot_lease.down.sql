DROP TABLE snapshot_lease;
