DROP TABLE metrics_report;
