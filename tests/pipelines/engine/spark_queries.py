"""SELECT statements that Spark accepts, and ones that it refuses, over one table of many types."""

INPUT_COLUMNS = {
    "order_id": "string",
    "country": "string",
    "amount": "double",
    "quantity": "int",
    "items": "array<int>",
    "tags": "array<string>",
    "address": "struct<city:string,zip:string>",
    "lines": "array<struct<sku:string,qty:int>>",
    "attributes": "map<string,string>",
    "ordered_at": "timestamp",
    "day": "date",
    "price": "decimal(10,2)",
    "active": "boolean",
    "unit": "string",
}

VALID_QUERIES = r"""
SELECT * FROM input
SELECT *, amount * 2 AS twice FROM input
SELECT *, explode(tags) AS tag FROM input
SELECT i.*, i.amount + 1 AS b FROM input AS i WHERE country IN ('x,y', 'FROM')
SELECT *, extract(hour FROM ordered_at) AS h FROM input
SELECT *, address.city AS city FROM input
SELECT *, input.address.city AS city FROM input
SELECT *, i.address.zip AS z FROM input i
SELECT *, items[0] AS first FROM input
SELECT *, lines[0].sku AS sku FROM input
SELECT *, lines.sku AS skus FROM input
SELECT *, attributes['k'] AS k FROM input
SELECT *, attributes.k AS k FROM input
SELECT * EXCEPT (amount) FROM input
SELECT *, transform(items, x -> x + amount) AS t FROM input
SELECT *, filter(lines, x -> x.qty > quantity) AS t FROM input
SELECT *, aggregate(items, 0, (acc, x) -> acc + x, acc -> acc * quantity) AS s FROM input
SELECT *, exists(tags, x -> x = unit) AS e FROM input
SELECT *, zip_with(items, items, (a, b) -> a + b) z FROM input
SELECT *, map_filter(attributes, (k, v) -> k = country) m FROM input
SELECT *, CASE WHEN amount > 5 THEN 'a' ELSE unit END AS d FROM input
SELECT *, CAST(amount AS INT) AS y, amount::int AS z FROM input
SELECT *, try_cast(unit AS DOUBLE) AS w FROM input
SELECT *, named_struct('x', amount).x AS y FROM input
SELECT *, struct(amount AS x).x AS y FROM input
SELECT *, date_trunc('hour', ordered_at) AS h, trunc(day, unit) AS a FROM input
SELECT *, current_date AS a, current_timestamp() AS b, interval 1 day AS c FROM input
SELECT *, timestamp '2020-01-01' AS t, date '2020-01-01' AS d FROM input
SELECT *, ordered_at + interval 1 hour AS later FROM input
SELECT *, date_add(day, quantity) AS later FROM input
SELECT *, date_add(HOUR, 1, ordered_at) AS later FROM input
SELECT *, timestampadd(MINUTE, quantity, ordered_at) AS later FROM input
SELECT *, timestampdiff(MINUTE, ordered_at, ordered_at) AS d FROM input
SELECT *, "text" AS dq, 'it''s' AS q FROM input
SELECT *, unit rlike 'a' AS r, unit like 'a%' AS l, amount <=> 1 AS n, quantity div 2 AS v FROM input
SELECT *, substring(unit FROM 1 FOR 2) AS s, position('a' IN unit) AS p, trim(BOTH 'x' FROM unit) AS t FROM input
SELECT *, overlay(unit PLACING 'x' FROM 1 FOR 1) AS o, unit || country AS c FROM input
SELECT *, amount + 1 AS a, a * 2 AS b FROM input
SELECT *, upper(country) AS c FROM input WHERE amount BETWEEN 1 AND 5
SELECT *, c FROM input LATERAL VIEW explode(tags) v AS c
SELECT *, v.c AS d FROM input LATERAL VIEW explode(tags) v AS c
SELECT *, p, c FROM input LATERAL VIEW posexplode(tags) v AS p, c
SELECT * FROM (SELECT *, amount * 2 AS b FROM input) WHERE b > 1
WITH x AS (SELECT *, amount * 2 AS b FROM input) SELECT *, b + 1 AS c FROM x
FROM input SELECT *, amount AS b
SELECT *, coalesce(unit, 'x') AS u, nvl2(unit, country, 'z') AS n, if(active, 1, 0) AS i FROM input
SELECT *, ifnull(unit, 'a') AS x FROM input
SELECT AMOUNT, Country, _topic, _partition, _offset FROM input
SELECT `amount` AS `my amount`, _topic FROM input
SELECT *, inline(lines) FROM input
SELECT *, explode(attributes) AS (k, v) FROM input
SELECT *, stack(2, 1, 2) AS s FROM input
SELECT *, from_json(unit, 'a INT, b STRING').a AS a FROM input
SELECT *, from_json(unit, 'a INT') AS j, j.a AS k FROM input
SELECT *, get_json_object(unit, '$.a') AS j FROM input
SELECT *, to_json(struct(*)) AS j FROM input
SELECT *, from_unixtime(quantity) AS f, to_timestamp(unit, 'yyyy') AS t FROM input
SELECT *, array_sort(items, (l, r) -> CASE WHEN l < r THEN -1 ELSE 1 END) AS s FROM input
SELECT *, element_at(items, 1) AS e, size(tags) AS n, array_contains(tags, unit) AS h FROM input
SELECT *, split(unit, ',')[0] AS s FROM input
SELECT *, make_date(2020, quantity, 1) AS m FROM input
SELECT *, row_number() OVER (PARTITION BY country ORDER BY amount) AS rn FROM input
SELECT *, ceil(amount, 1) AS c, round(amount, 2) AS r, bround(amount) AS b FROM input
SELECT *, decode(unit, 'a', 'b', 'c') AS d, mask(unit) AS m FROM input
SELECT *, make_interval(0, 0, 0, quantity) AS i FROM input
SELECT *, session_user() AS u FROM input
SELECT *, current_user AS u, user AS v FROM input
SELECT *, variant_get(parse_json(unit), '$.a', 'int') AS v FROM input
SELECT *, parse_json(unit):a::int AS v FROM input
SELECT *, mask(unit, lowerChar => 'q') AS m FROM input
SELECT *, collate(unit, 'UNICODE') AS u FROM input
SELECT *, amount AS x FROM input |> WHERE amount > 1
FROM input |> SELECT *, amount AS y |> WHERE y > 1
SELECT *, day AS date, ordered_at AS timestamp FROM input
SELECT *, (SELECT 1) AS one FROM input
SELECT *, a.b AS c FROM (SELECT *, struct(amount AS b) AS a FROM input)
SELECT *, amount > 1 AND active OR NOT active AS k, ! active AS l FROM input
SELECT /*+ REPARTITION(2) */ * FROM input
SELECT * FROM input -- amout
SELECT *, t.* FROM input LATERAL VIEW inline(lines) t AS s, q
SELECT *, col FROM input, LATERAL (SELECT amount + 1 AS col)
SELECT *, x FROM input, LATERAL explode(tags) AS t(x)
SELECT *, sequence(1, quantity, 1) AS q, window(ordered_at, '1 minute').start AS w FROM input
SELECT *, nullif(amount, 0) AS n, greatest(amount, quantity) AS g, percentile(amount, 0.5) OVER () AS p FROM input
SELECT *, cast(null AS string) AS nothing, X'1F' AS h, 1L AS l, 1.5BD AS b, 5S AS s FROM input
SELECT *, named_struct('a', 1, 'b', amount) AS st, map('x', amount)['x'] AS mm FROM input
SELECT *, to_char(price, '999.99') AS c, format_number(amount, 2) AS f FROM input
SELECT *, st.x.y AS z FROM (SELECT *, struct(struct(amount AS y) AS x) AS st FROM input)
SELECT *, reduce(items, 0, (s, x) -> s + x) AS r, forall(items, x -> x > 0) AS f FROM input
SELECT *, regexp_extract(unit, '(\\d+)', 1) AS r FROM input
SELECT *, IDENTIFIER('amount') AS a FROM input
SELECT *, 1 AS select, amount AS `from` FROM input
SELECT *, from_utc_timestamp(ordered_at, unit) AS t, hour(ordered_at) AS h, dayofweek(day) AS w FROM input
SELECT *, date_format(ordered_at, 'yyyy') AS y, months_between(ordered_at, ordered_at) AS m FROM input
SELECT *, datediff(HOUR, ordered_at, ordered_at) AS m, dateadd(day, 1, day) AS dd FROM input
SELECT address.*, _topic FROM input
SELECT i.address.*, i.country FROM input i
SELECT *, col FROM input LATERAL VIEW explode(tags) v
SELECT *, a.sku AS z FROM input LATERAL VIEW OUTER explode(lines) t AS a
SELECT a.* FROM input LATERAL VIEW explode(lines) t AS a
SELECT a FROM input, (VALUES (1)) AS t(a)
SELECT *, g FROM input, range(5) AS r(g)
SELECT id FROM range(5)
SELECT country, sum(amount) AS s FROM input GROUP BY country HAVING s > 1
SELECT *, count(*) OVER w AS n FROM input WINDOW w AS (PARTITION BY country)
SELECT *, (SELECT max(amount) FROM input) AS m FROM input
SELECT *, `a b`.city AS c FROM (SELECT *, address AS `a b` FROM input)
SELECT *, attributes.anything AS z FROM input
SELECT *, json_tuple(unit, 'a', 'b') AS (x, y) FROM input
SELECT *, transform(lines, (l, i) -> l.qty + i) AS t FROM input
SELECT *, unit AS u, u AS v, struct(u, v) AS s, s.u AS w FROM input
SELECT *, any_value(amount) OVER (ORDER BY ordered_at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS a FROM input
""".strip().splitlines()

INVALID_QUERIES = r"""
SELECT country, amout FROM input
SELECT *, amout * 2 AS b FROM input
SELECT *, upper(contry) AS c FROM input
SELECT * FROM input WHERE amout > 5
SELECT i.amout FROM input i
SELECT *, input.amout AS b FROM input
SELECT *, address.cty AS c FROM input
SELECT *, lines[0].skuu AS c FROM input
SELECT *, transform(items, x -> x + amout) AS t FROM input
SELECT *, transform(itms, x -> x + 1) AS t FROM input
SELECT *, explode(tgs) AS tag FROM input
SELECT *, b + 1 AS c FROM (SELECT *, amount AS bb FROM input)
WITH x AS (SELECT *, amout AS b FROM input) SELECT * FROM x
SELECT * FROM inputt
SELECT *, uper(country) AS c FROM input
SELECT *, amount + FROM input
SELEC * FROM input
SELECT *, CASE WHEN amout > 1 THEN 1 END AS c FROM input
SELECT *, extract(hour FROM orderd_at) AS h FROM input
SELECT *, cast(amout AS int) AS c FROM input
SELECT *, cast(amount AS intt) AS c FROM input
SELECT *, date_trunc('hour', ordred_at) AS h FROM input
SELECT *, items + 1 AS h FROM input
SELECT *, upper(country, 2) AS h FROM input
SELECT *, amount AS a, aa + 1 AS b FROM input
SELECT * EXCEPT (amout) FROM input
SELECT *, j.amount AS c FROM input i
SELECT *, filter(lines, x -> x.qt > 1) AS t FROM input
SELECT *, exists(tags, x -> y = 1) AS t FROM input
SELECT *, c FROM input LATERAL VIEW explode(tags) v AS d
SELECT *, concat_ws(',', tag) AS t FROM input
SELECT * FROM input ORDER BY amout
SELECT *, row_number() OVER (PARTITION BY contry ORDER BY amount) AS r FROM input
SELECT *, amount.x AS r FROM input
SELECT *, substring(unt, 1, 2) AS s FROM input
SELECT *, in AS s FROM input
SELECT *, timestampadd(MINUTE, quantty, ordered_at) AS later FROM input
SELECT *, aggregate(items, 0, (acc, x) -> acc + y) AS s FROM input
SELECT *, amont BETWEEN 1 AND 2 AS s FROM input
SELECT *, named_struct('a', amont) AS s FROM input
SELECT *, sum(amount) AS s FROM input
SELECT *, unix_millis(ordered_at) AS ms, hash(*) AS h FROM input
SELECT *, ordered_at AS `at time` FROM input WHERE `at time` IS NULL OR true ORDER BY 1
SELECT DISTINCT *, amount AS a FROM input
""".strip().splitlines()
