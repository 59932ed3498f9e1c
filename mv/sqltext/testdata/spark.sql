-- @ backticks
SELECT `a b`, `c``d` FROM `my-db`.`t` AS `x`
-- @ double quotes are strings
SELECT "it's", 'a\'b' FROM t
-- @ time travel
SELECT * FROM t VERSION AS OF 5 a JOIN u FOR SYSTEM_TIME AS OF '2024-01-01' b ON true
-- @ lateral view
SELECT k, x FROM t LATERAL VIEW OUTER explode(arr) e AS x LATERAL VIEW posexplode(m) AS p, v
-- @ group by with rollup
SELECT a, b, count(*) FROM t GROUP BY a, b WITH ROLLUP
-- @ grouping sets suffix
SELECT a, b, count(*) FROM t GROUP BY a, b GROUPING SETS ((a), (b))
-- @ cast to nested types
SELECT CAST(a AS STRUCT<x: INT, y: ARRAY<STRUCT<z: STRING>>>) FROM t
-- @ numeric suffixes
SELECT 1L, 2S, 3Y, 1.5D, 2.5BD, 3F FROM t
-- @ null-safe equality
SELECT a <=> b, a == c FROM t
-- @ date trunc
SELECT date_trunc('DD', ts) AS day, count(*) FROM db.t GROUP BY day
-- @ hints
SELECT /*+ BROADCAST(u) */ t.a FROM t JOIN u ON t.k = u.k
-- @ interval
SELECT ts + INTERVAL 1 YEAR 2 MONTHS, ts - INTERVAL '5' DAY FROM t
-- @ rlike
SELECT a FROM t WHERE a RLIKE '^x' AND b LIKE ANY ('a%', 'b%') AND c DIV 2 = 1
-- @ distribute by
SELECT a FROM t DISTRIBUTE BY a SORT BY b
-- @ files
SELECT * FROM parquet.`/tmp/a.parquet`
-- @ semi join
SELECT * FROM t LEFT SEMI JOIN u ON t.k = u.k LEFT ANTI JOIN v ON t.k = v.k
-- @ minus
SELECT a FROM t MINUS SELECT a FROM u
-- @ generator with several aliases
SELECT stack(2, 1, 2, 3, 4) AS (a, b) FROM t
-- @ higher-order functions
SELECT transform(a, x -> x + 1), aggregate(b, 0, (acc, x) -> acc + x), filter(c, y -> y > 1) FROM t
-- @ variant path
SELECT v:a.b::string FROM t
-- @ from first
FROM t SELECT a
-- @ window
SELECT window(ts, '5 minutes'), count(*) FROM t GROUP BY window(ts, '5 minutes')
-- @ raw string
SELECT r'a\b' FROM t
-- @ word that starts with a digit
SELECT 1a, 2b.c FROM 3t
-- @ tablesample
SELECT * FROM t TABLESAMPLE (10 PERCENT) s
-- @ except columns
SELECT * EXCEPT (a, b) FROM t
