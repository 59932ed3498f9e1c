-- @ time travel
SELECT * FROM t FOR VERSION AS OF 123 a JOIN u FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00' ON true
-- @ unnest
SELECT k, v, n FROM t CROSS JOIN UNNEST(m, a) WITH ORDINALITY AS u (k, v, n)
-- @ sample
SELECT * FROM t TABLESAMPLE BERNOULLI (10)
-- @ listagg
SELECT a, listagg(b, ',') WITHIN GROUP (ORDER BY c) FROM t GROUP BY a
-- @ array and row types
SELECT CAST(a AS ARRAY(ROW(x INTEGER, y VARCHAR))), TRY(b), ARRAY[1, 2], ROW(1, 'a') FROM t
-- @ unicode string
SELECT U&'snowman \2603', U&"d\0061t" FROM t
-- @ comment does not nest
SELECT /* a /* b */ x FROM t
-- @ match recognize
SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY a ORDER BY b MEASURES x AS y PATTERN (A B+) DEFINE B AS x > 1) AS m
-- @ json value
SELECT json_value(a, 'lax $.x' RETURNING integer), json_query(b, 'lax $.y') FROM t
-- @ table function
SELECT * FROM TABLE(sequence(start => 1, stop => 10))
-- @ table function with a table
SELECT * FROM TABLE(exclude_columns(input => TABLE(orders), columns => DESCRIPTOR(a)))
-- @ interval
SELECT a + INTERVAL '1' DAY, b + INTERVAL '1-2' YEAR TO MONTH FROM t
-- @ at time zone
SELECT date_trunc('day', a AT TIME ZONE 'Europe/Berlin') FROM t GROUP BY 1
-- @ fetch first
SELECT a FROM t ORDER BY a OFFSET 5 ROWS FETCH FIRST 10 ROWS ONLY
-- @ hidden columns
SELECT "$path", "$file_modified_time" FROM t
-- @ metadata table
SELECT * FROM ns."t$snapshots"
-- @ non-reserved words
SELECT offset, limit, year, day FROM t WHERE offset > 1
-- @ lambda
SELECT transform(a, x -> x + 1), reduce(b, 0, (s, x) -> s + x, s -> s) FROM t
-- @ decimal literal
SELECT DECIMAL '1.5', X'65', BIGINT '5' FROM t
-- @ try cast
SELECT TRY_CAST(a AS timestamp(6) with time zone) FROM t
-- @ group by auto
SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ())
-- @ with ordinality in a cte
WITH c AS (SELECT a FROM t) SELECT * FROM c CROSS JOIN UNNEST(c.a) AS x (y)
-- @ values
SELECT * FROM (VALUES 1, 2, 3) AS v (a)
-- @ quoted mixed case
SELECT "A".b AS "Mixed" FROM "Cat"."Ns"."T" AS "A"
-- @ percentile
SELECT approx_percentile(a, ARRAY[0.5, 0.9]), approx_distinct(b) FROM t
