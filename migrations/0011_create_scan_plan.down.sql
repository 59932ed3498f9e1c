DROP TABLE scan_plan_page;
DROP TABLE scan_plan;
