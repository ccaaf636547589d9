-- uvm-plaid/chorus and uber-archive/sql-differential-privacy ElasticSensitivityAnalysisTest.scala
SELECT COUNT(*) FROM orders WHERE product_id = 1
SELECT COUNT(order_id) FROM orders
WITH t1 AS (SELECT * FROM orders) SELECT COUNT(*) FROM t1
WITH t1 AS (SELECT COUNT(*) FROM orders) SELECT * FROM t1
SELECT COUNT(ROUND(order_date, 1)) FROM orders
SELECT COUNT(DISTINCT order_id) FROM orders
SELECT order_date, COUNT(*) FROM orders GROUP BY 1
SELECT COUNT(order_id)=100 FROM orders
SELECT COUNT(*) FROM orders JOIN recommendations ON orders.customer_id = recommendations.customer_id WHERE orders.product_id = 1
SELECT COUNT(*) FROM orders, customers WHERE orders.customer_id = customers.customer_id
SELECT COUNT(*) FROM orders, customers WHERE orders.customer_id = customers.customer_id AND orders.customer_id != 1
SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id = customers.customer_id AND customers.customer_id > 10
SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id > 10 AND customers.customer_id = orders.customer_id
SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id = customers.customer_id AND (orders.product_id = 1 OR customers.customer_id = 1)
SELECT COUNT(*) FROM orders JOIN customers ON (orders.product_id = 1 AND (customers.customer_id = 1 AND (orders.customer_id = customers.customer_id)))
SELECT COUNT(*) FROM orders JOIN customers ON (orders.customer_id = customers.customer_id) AND (orders.product_id = customers.address)
SELECT COUNT(*) FROM orders JOIN customers ON (orders.product_id = customers.address) AND (orders.customer_id = customers.customer_id)
SELECT orders.product_id, COUNT(*) FROM orders JOIN recommendations ON orders.customer_id = recommendations.customer_id WHERE orders.product_id = 1 GROUP BY 1
WITH t1 AS ( SELECT orders.customer_id FROM orders JOIN customers ON orders.customer_id = customers.address ) SELECT COUNT(*) FROM t1 JOIN recommendations ON t1.customer_id = recommendations.customer_id
WITH t1 AS ( SELECT orders.customer_id FROM orders JOIN products ON orders.product_id = products.product_id ) SELECT COUNT(*) FROM t1 JOIN recommendations ON t1.customer_id = recommendations.customer_id
SELECT COUNT(*) FROM orders o1 JOIN orders o2 ON o1.order_id = o2.order_id
SELECT COUNT(*) FROM orders o1 JOIN orders o2 ON o1.customer_id = o2.customer_id
WITH t1 AS (SELECT * FROM orders JOIN customers ON orders.customer_id = customers.customer_id) SELECT COUNT(*) FROM t1 JOIN orders ON t1.order_id = orders.order_id
WITH r1 AS (SELECT c.customer_id AS tra_id FROM orders o JOIN customers c ON o.order_id = c.customer_id) SELECT COUNT(*) FROM r1 a JOIN r1 b ON a.tra_id = b.tra_id
WITH t1 AS (SELECT COUNT(*) as mycount FROM orders JOIN customers ON orders.customer_id = customers.customer_id) SELECT mycount FROM t1
WITH t1 AS (SELECT order_date, COUNT(*)+1 as num_orders_plus_one FROM orders GROUP BY 1) SELECT COUNT(order_date) FROM t1 WHERE num_orders_plus_one < 10
SELECT COUNT(*) FROM orders JOIN products ON orders.product_id = products.product_id WHERE orders.product_id = 1
WITH t1 AS (SELECT * from products WHERE product_id = 1) SELECT COUNT(*) FROM orders JOIN t1 ON orders.product_id = t1.product_id
-- the same tests, of what these systems refuse and wpinq can answer
SELECT customer_id, COUNT(*) FROM orders GROUP BY 1
SELECT CASE WHEN customer_id = 0 THEN 0 else 1 END, COUNT(*) FROM orders GROUP BY 1
SELECT COUNT(*)+100 FROM orders
-- uvm-plaid/chorus HistogramAnalysisTest.scala
SELECT product_id, COUNT(*) FROM orders GROUP BY product_id
SELECT order_date as bin, COUNT(*) FROM orders GROUP BY bin
SELECT order_date+1 as bin, COUNT(*) FROM orders GROUP BY bin
SELECT product_id, ROUND(COUNT(*), 0) FROM orders GROUP BY 1
SELECT (AVG(order_cost) / COUNT(*)) as "result" FROM orders
SELECT COUNT(*) FROM orders
SELECT COUNT(*) as my_count, SUM(order_cost) as my_sum, AVG(order_cost) as my_avg FROM orders
-- uvm-plaid/chorus TaintAnalysisTest.scala, WPINQRewriterTest.scala, SampleAndAggregateRewriterTest.scala, CoverageRewriterTest.scala
SELECT customers.name as name, count(*) as "count" FROM orders JOIN customers ON orders.customer_id = customers.customer_id GROUP BY 1
SELECT AVG(quantity) FROM orders WHERE product_id = 1
SELECT orders.product_id, COUNT(*) FROM orders JOIN recommendations ON orders.product_id = recommendations.product_id WHERE orders.product_id = 1 GROUP BY 1
SELECT MAX(quantity) FROM orders WHERE product_id = 1
SELECT COUNT(*), AVG(order_cost) FROM orders
-- uvm-plaid/chorus src/main/scala/examples, uber-archive/sql-differential-privacy QueryRewritingExample.scala
SELECT SUM(order_cost) FROM orders WHERE product_id = 1
SELECT AVG(order_cost) FROM orders
SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id = customers.customer_id WHERE orders.product_id = 1 AND customers.address LIKE '%United States%'
SELECT AVG(order_cost) FROM orders WHERE product_id = 1
