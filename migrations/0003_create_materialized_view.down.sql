DROP TABLE refresh;
DROP TABLE materialized_view_source;
DROP TABLE materialized_view;
