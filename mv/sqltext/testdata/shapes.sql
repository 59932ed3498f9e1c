-- @ star
SELECT * FROM t
-- @ qualified star
SELECT a.*, b.x FROM t a, u b
-- @ no from
SELECT 1, 'a' AS b, NULL
-- @ comments
SELECT /* a /* nested */ FROM nowhere */ x -- FROM u
FROM t -- end
-- @ trailing semicolon
SELECT x FROM t ;
-- @ quoted names
SELECT "Mixed Case", "a""b" AS "quoted ""alias""" FROM "My Schema"."My.Table" AS "T t"
-- @ three parts
SELECT count(*) FROM cat.ns.t
-- @ reserved column names
SELECT "select", "from", "group" FROM "table" GROUP BY "select", "from", "group"
-- @ non-reserved words as names
SELECT date, year, value, key, name, type FROM values_t GROUP BY date, year, value, key, name, type
-- @ unicode
SELECT größe AS "naïve ☃", 'ß' FROM tabellé WHERE ünïcode = 'ñ'
-- @ group by ordinal
SELECT date_trunc('day', ts), symbol, count(*) FROM t GROUP BY 1, 2
-- @ group by alias
SELECT date_trunc('day', ts) AS d, count(*) FROM t GROUP BY d
-- @ group by expression
SELECT date_trunc('day', ts) AS d, count(*) AS n FROM t GROUP BY date_trunc('day', ts)
-- @ group by all
SELECT symbol, sum(qty) FROM t GROUP BY ALL
-- @ group by nothing
SELECT count(*) FROM t GROUP BY ()
-- @ rollup
SELECT a, b, sum(x) FROM t GROUP BY ROLLUP (a, b)
-- @ cube
SELECT a, b, sum(x) FROM t GROUP BY CUBE (a, b)
-- @ grouping sets
SELECT a, b, sum(x), grouping(a) FROM t GROUP BY GROUPING SETS ((a, b), (a), ())
-- @ key and rollup
SELECT a, b, c, sum(x) FROM t GROUP BY a, ROLLUP (b, c)
-- @ having
SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 10 AND max(x) < 5
-- @ distinct
SELECT DISTINCT a, b FROM t
-- @ distinct on
SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b DESC
-- @ where operators
SELECT x FROM t WHERE a = 1 AND b <> 2 OR NOT c >= 3 AND (d < 4 OR e != 5) AND f IS NOT NULL AND g IS NULL
-- @ between, in, like
SELECT x FROM t WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4 AND c IN (1, 2) AND d NOT IN ('a') AND e LIKE 'x%' ESCAPE '!' AND f NOT ILIKE '%y'
-- @ is distinct from
SELECT x FROM t WHERE a IS DISTINCT FROM b AND c IS NOT DISTINCT FROM 5
-- @ arithmetic
SELECT -a + b * c - d / e % f, a // b, a ** b, (a + b) * c FROM t
-- @ bits and strings
SELECT a & b | c, a || b || 'x', a << 2, ~a FROM t
-- @ numbers
SELECT 1, 1.5, .5, 1., 1e3, 1.5e-3, 0x1F, 1_000_000 FROM t
-- @ strings
SELECT 'it''s', E'a\nb', $$dollar 'quoted'$$, $tag$x$tag$, '' FROM t
-- @ casts
SELECT CAST(a AS BIGINT), TRY_CAST(b AS DECIMAL(10, 2)), c::VARCHAR::DATE, d::INTEGER[], e::STRUCT(x INTEGER, y VARCHAR) FROM t
-- @ multi-word types
SELECT a::TIMESTAMP WITH TIME ZONE, b::DOUBLE PRECISION, CAST(c AS TIMESTAMP WITHOUT TIME ZONE) FROM t
-- @ case
SELECT CASE WHEN a > 1 THEN 'x' WHEN a > 0 THEN 'y' ELSE 'z' END, CASE b WHEN 1 THEN 2 END FROM t
-- @ intervals
SELECT a + INTERVAL 5 DAY, b - INTERVAL '5' HOUR, c + INTERVAL '1 month', d + INTERVAL (x) MINUTE FROM t
-- @ extract
SELECT extract(year FROM a), extract('month' FROM b), date_part('day', c) FROM t
-- @ keyword functions
SELECT trim(BOTH 'x' FROM a), trim(b), substring(c FROM 2 FOR 3), substring(d, 1, 2), position('x' IN e) FROM t
-- @ typed literals
SELECT DATE '2024-01-01', TIMESTAMP '2024-01-01 00:00:00', TIME '10:00:00', x FROM t
-- @ lists and structs
SELECT [1, 2, 3], {'a': 1, 'b': x}, MAP {'k': 1}, a[1], b[1:2], c['k'], d.e.f FROM t
-- @ lambdas
SELECT list_transform(a, x -> x + 1), list_filter(b, lambda y: y > 2), list_reduce(c, (p, q) -> p + q) FROM t
-- @ json arrows
SELECT a -> '$.x', b ->> 'y' FROM t
-- @ at time zone
SELECT a AT TIME ZONE 'UTC', date_trunc('day', b AT TIME ZONE 'America/New_York') FROM t
-- @ current functions
SELECT current_date, current_timestamp, now(), x FROM t
-- @ aggregates
SELECT count(*), count(DISTINCT a), sum(b) FILTER (WHERE c > 1), array_agg(d ORDER BY e DESC NULLS LAST), string_agg(f, ',') FROM t
-- @ ohlcv
SELECT symbol, date_trunc('minute', ts) AS minute_ts, min_by(price, ts) AS open, max(price) AS high, min(price) AS low,
  max_by(price, ts) AS close, sum(quantity) AS volume, count(*) AS trade_count FROM market_data.trades GROUP BY 1, 2
-- @ windows
SELECT a, sum(b) OVER (PARTITION BY c ORDER BY d ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), row_number() OVER w, lag(b, 1) OVER (w ORDER BY e) FROM t WINDOW w AS (PARTITION BY a)
-- @ window frames
SELECT avg(a) OVER (ORDER BY b RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING), max(c) OVER (ROWS 3 PRECEDING), first_value(d IGNORE NULLS) OVER () FROM t
-- @ qualify
SELECT a, b FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY b) = 1
-- @ inner join on
SELECT a.x FROM t a JOIN u b ON a.k = b.k
-- @ join chain
SELECT a.x FROM t a LEFT JOIN u b ON a.k = b.k RIGHT OUTER JOIN v c ON b.k = c.k FULL JOIN w d ON c.k = d.k CROSS JOIN z
-- @ join using
SELECT x FROM t JOIN u USING (k, l)
-- @ natural join
SELECT x FROM t NATURAL JOIN u
-- @ bracketed joins
SELECT x FROM (t JOIN u USING (k)) JOIN (v CROSS JOIN w) ON true
-- @ nested conditions
SELECT * FROM a JOIN b JOIN c ON b.x = c.x ON a.x = b.x
-- @ semi and anti
SELECT x FROM t SEMI JOIN u USING (k) ANTI JOIN v ON t.k = v.k
-- @ asof
SELECT x FROM t ASOF JOIN u ON t.k = u.k AND t.ts >= u.ts
-- @ positional
SELECT * FROM t POSITIONAL JOIN u
-- @ comma and join
SELECT * FROM t, u JOIN v USING (k), w
-- @ self join
SELECT a.x, b.x FROM t a JOIN t b ON a.id = b.parent
-- @ subquery in from
SELECT d, count(*) FROM (SELECT date_trunc('day', ts) AS d FROM trades WHERE price > 0) s GROUP BY d
-- @ column aliases
SELECT p FROM (SELECT a, b FROM t) AS s (p, q)
-- @ lateral
SELECT * FROM t, LATERAL (SELECT u.x FROM u WHERE u.k = t.k) l
-- @ values in from
SELECT a FROM (VALUES (1, 'x'), (2, 'y')) AS v (a, b)
-- @ values
VALUES (1, 2), (3, 4)
-- @ unnest
SELECT x FROM t, unnest(t.list) AS u (x)
-- @ table function
SELECT * FROM range(10) r, generate_series(1, 5) AS g (n)
-- @ file function
SELECT * FROM read_parquet('a.parquet', hive_partitioning = true)
-- @ file name
SELECT * FROM 'data/*.csv' AS f
-- @ sample
SELECT * FROM t TABLESAMPLE 10 PERCENT
-- @ sample with method
SELECT * FROM t TABLESAMPLE reservoir(20 ROWS) REPEATABLE (100)
-- @ time travel
SELECT * FROM t AT (VERSION => 5) JOIN u AT (TIMESTAMP => '2024-01-01') ON true
-- @ exists
SELECT x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AND NOT EXISTS (SELECT 1 FROM v)
-- @ in subquery
SELECT x FROM t WHERE k IN (SELECT k FROM dim) AND (a, b) IN (SELECT c, d FROM u)
-- @ scalar subquery
SELECT x, (SELECT max(y) FROM u) AS m FROM t WHERE x > (SELECT avg(x) FROM t)
-- @ quantified
SELECT x FROM t WHERE x = ANY (SELECT y FROM u) AND x > ALL (SELECT z FROM v)
-- @ array subquery
SELECT ARRAY(SELECT x FROM t)
-- @ cte
WITH f AS (SELECT * FROM trades WHERE price > 0) SELECT date_trunc('day', ts) AS d, count(*) FROM f GROUP BY 1
-- @ cte chain
WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a JOIN u USING (k)), c AS MATERIALIZED (SELECT * FROM b) SELECT * FROM c, a
-- @ cte shadows table
WITH t AS (SELECT * FROM t WHERE x > 1) SELECT * FROM t
-- @ cte with columns
WITH c (p, q) AS (SELECT a, b FROM t) SELECT p FROM c
-- @ cte in subquery
SELECT * FROM (WITH c AS (SELECT * FROM t) SELECT * FROM c) s, c
-- @ recursive cte
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r, t
-- @ cte not a schema
WITH c AS (SELECT 1) SELECT * FROM main.c
-- @ union all
SELECT date_trunc('day', ts) AS d FROM trades_us UNION ALL SELECT date_trunc('day', ts) AS d FROM trades_eu
-- @ set operations
SELECT a FROM t UNION SELECT a FROM u INTERSECT SELECT a FROM v EXCEPT ALL SELECT a FROM w
-- @ bracketed set operations
(SELECT a FROM t UNION ALL SELECT a FROM u) EXCEPT (SELECT a FROM v ORDER BY 1 LIMIT 5)
-- @ union by name
SELECT a, b FROM t UNION ALL BY NAME SELECT b, a FROM u
-- @ order and limit
SELECT a FROM t ORDER BY a DESC NULLS LAST, b LIMIT 10 OFFSET 5
-- @ limit percent
SELECT a FROM t ORDER BY a LIMIT 10 %
-- @ bracketed query
((SELECT a FROM t))
-- @ bracketed with order
(SELECT a FROM t) ORDER BY a
-- @ from first
FROM t
-- @ from first with select
FROM t SELECT a, count(*) WHERE b > 1 GROUP BY a
-- @ table statement
TABLE t
-- @ exclude and replace
SELECT * EXCLUDE (a, b), c.* REPLACE (x + 1 AS x) FROM t, c
-- @ columns
SELECT max(COLUMNS(*)), COLUMNS('a.*') FROM t
-- @ pivot in from
SELECT * FROM t PIVOT (sum(x) FOR y IN (1, 2)) AS p
-- @ unpivot in from
SELECT * FROM t UNPIVOT (v FOR n IN (a, b))
-- @ alias prefix
SELECT a: x + 1, b: y FROM s: t
-- @ lateral alias
SELECT x + 1 AS y, y * 2 AS z FROM t
-- @ deep brackets
SELECT ((((a)))), (((b + 1)) * 2) FROM ((SELECT * FROM t)) s
-- @ method chaining
SELECT a.upper().lower(), (b || 'x').length() FROM t
-- @ ordered set
SELECT mode() WITHIN GROUP (ORDER BY a), percentile_cont(0.5) WITHIN GROUP (ORDER BY b) FROM t
-- @ collate
SELECT a COLLATE NOCASE FROM t ORDER BY b COLLATE NOCASE
-- @ glob and similar
SELECT a GLOB 'x*', b SIMILAR TO 'y.*', c ~ 'z' FROM t
-- @ implicit alias
SELECT a x, count(*) n FROM t z GROUP BY a
-- @ trailing comma
SELECT a, b, FROM t
-- @ left and right functions
SELECT left(a, 2), right(b, 3), replace(c, 'x', 'y') FROM t
-- @ boolean tests
SELECT a IS TRUE, b IS NOT FALSE, c IS UNKNOWN FROM t
-- @ isnull
SELECT a ISNULL, b NOTNULL FROM t
-- @ five-minute bars
SELECT date_trunc('minute', ts) - (extract(minute FROM ts) % 5) * INTERVAL '1' MINUTE AS bar, count(*) FROM trades GROUP BY 1
-- @ two granularities
SELECT date_trunc('day', ts) AS d, date_trunc('hour', ts) AS h, count(*) FROM trades GROUP BY 1, 2
-- @ unaliased computed column
SELECT date_trunc('day', ts), count(*) FROM trades GROUP BY 1
-- @ projection
SELECT symbol, price FROM trades
-- @ join of the controller's rejected list
SELECT t.symbol, date_trunc('day', t.ts) AS day, count(*) FROM trades t JOIN symbols s ON t.symbol = s.ticker GROUP BY 1, 2
-- @ weekly
SELECT symbol, date_trunc('week', ts) AS week, sum(qty) AS volume FROM iceberg.md.trades WHERE color = 'red' GROUP BY 1, 2
-- @ hourly settled
SELECT symbol, date_trunc('hour', ts) AS hour, count(*) AS c FROM iceberg.md.trades WHERE status = 'settled' GROUP BY 1, 2
-- @ chained bars
SELECT symbol, date_trunc('hour', minute_ts) AS hour_bucket, min_by(open, minute_ts) AS open, max(high) AS high,
  min(low) AS low, max_by(close, minute_ts) AS close, sum(volume) AS volume, sum(trade_count) AS trade_count
FROM iceberg.analytics.ohlcv_1m GROUP BY 1, 2
-- @ grouping function
SELECT a, grouping_id(a, b) FROM t GROUP BY CUBE (a, b)
-- @ filter with over
SELECT sum(x) FILTER (WHERE y > 1) OVER (PARTITION BY z) FROM t
-- @ nested aggregates in expressions
SELECT a, sum(b) / nullif(count(*), 0) + coalesce(max(c), 0) FROM t GROUP BY a
-- @ subquery in join condition
SELECT * FROM t JOIN u ON t.k = u.k AND t.v > (SELECT min(v) FROM w)
-- @ union in from
SELECT d, sum(n) FROM (SELECT d, n FROM a UNION ALL SELECT d, n FROM b) s GROUP BY d
-- @ order by in aggregate with distinct
SELECT string_agg(DISTINCT a, ',' ORDER BY a) FROM t
-- @ not precedence
SELECT x FROM t WHERE NOT a AND NOT (b OR c) AND NOT d IN (1)
-- @ negative numbers
SELECT -1, - 1, +1, - -x FROM t WHERE a=-1 AND b<-2
-- @ row comparison
SELECT x FROM t WHERE (a, b) = (1, 2)
-- @ struct fields of a table
SELECT t.s.f, s.f FROM t
-- @ named arguments
SELECT struct_pack(a := 1, b := x) FROM t
