-- McSherry, Privacy integrated queries, SIGMOD 2009, in LINQ, as SQL (from memory)
SELECT COUNT(*) FROM (SELECT DISTINCT ip FROM searches WHERE query = 'cricket') AS t
SELECT query, COUNT(DISTINCT ip) FROM searches WHERE query IN ('cricket', 'football') GROUP BY query
SELECT times, COUNT(*) FROM (SELECT ip, COUNT(*) AS times FROM searches WHERE query = 'cricket' GROUP BY ip) AS t GROUP BY times
SELECT region, COUNT(*) FROM searches JOIN regions USING (ip) GROUP BY region
-- Proserpio, Goldberg, McSherry, Calibrating data to sensitivity, PVLDB 7(8), 2014, in LINQ, as SQL (from memory)
SELECT degree, COUNT(*) FROM (SELECT a, COUNT(*) AS degree FROM edges GROUP BY a) AS t GROUP BY degree ORDER BY degree
SELECT COUNT(*) FROM (SELECT x.a, y.b FROM edges x JOIN edges y ON x.b = y.a) AS t
SELECT COUNT(*) FROM edges x JOIN edges y ON x.b = y.a JOIN edges z ON y.b = z.a AND z.b = x.a
-- Johnson, Near, Song, Towards practical differential privacy for SQL queries (Flex), PVLDB 11(5), 2018, section 5 (from memory)
SELECT COUNT(*) FROM trips
SELECT COUNT(DISTINCT driver_id) FROM trips JOIN drivers USING (driver_id) WHERE trips.city <> drivers.city AND trips.status = 'completed'
SELECT city, COUNT(*) FROM trips WHERE status = 'completed' GROUP BY city
SELECT COUNT(*) FROM drivers WHERE city = 'Sydney' AND status = 'active'
SELECT COUNT(*) FROM drivers d JOIN analytics a ON d.driver_id = a.driver_id WHERE d.city = 'Hong Kong' AND a.trips > 10
SELECT day, COUNT(DISTINCT driver_id) FROM trips GROUP BY day
-- Mohan and others, GUPT, SIGMOD 2012; Nissim, Raskhodnikova, Smith, 2007 (from memory)
SELECT AVG(age) FROM census
SELECT MEDIAN(age) FROM census
SELECT VARIANCE(age), COUNT(*) FROM census WHERE sex = 'Female'
-- Wilson and others, Differentially private SQL with bounded user contribution, PoPETs 2020; TPC-H by the customer (from memory)
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price, SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price, AVG(l_quantity) AS avg_qty, COUNT(*) AS count_order FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
SELECT o_orderpriority, COUNT(*) AS order_count FROM tpch_orders WHERE o_orderdate >= DATE '1993-07-01' AND EXISTS (SELECT * FROM lineitem WHERE l_custkey = o_custkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority
SELECT c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT OUTER JOIN tpch_orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey) AS c_orders GROUP BY c_count ORDER BY custdist DESC, c_count DESC
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM customer JOIN lineitem ON c_custkey = l_custkey JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'ASIA' GROUP BY n_name ORDER BY revenue DESC
SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count FROM tpch_orders JOIN lineitem ON o_custkey = l_custkey AND o_orderkey = l_orderkey WHERE l_shipmode IN ('MAIL', 'SHIP') GROUP BY l_shipmode ORDER BY l_shipmode
SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue FROM lineitem JOIN part ON l_partkey = p_partkey
SELECT p_brand, p_type, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp JOIN part ON p_partkey = ps_partkey WHERE p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' GROUP BY p_brand, p_type ORDER BY supplier_cnt DESC
-- Near and others, Oasis Labs' documents of its differential privacy service over Chorus (from memory)
SELECT COUNT(*) FROM trips WHERE pickup = 'airport'
SELECT pickup, COUNT(*) FROM trips GROUP BY pickup HAVING COUNT(*) > 100
SELECT AVG(fare) FROM trips WHERE fare < 100
SELECT SUM(fare) FROM trips WHERE day BETWEEN '2020-01-01' AND '2020-01-31'
