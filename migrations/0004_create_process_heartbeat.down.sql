DROP TABLE process_heartbeat;
