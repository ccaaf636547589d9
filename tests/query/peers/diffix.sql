-- diffix/pg_diffix test/sql/noisy.sql
SELECT COUNT(*) FROM test_customers
SELECT COUNT(*) FROM test_purchases
SELECT COUNT(city), COUNT(DISTINCT city) FROM test_customers
SELECT COUNT(DISTINCT cid) FROM test_purchases
SELECT city, COUNT(DISTINCT id) FROM test_customers GROUP BY 1
SELECT 1, COUNT(*) FROM test_patients
SELECT city FROM test_patients GROUP BY 1
SELECT COUNT(*), COUNT(city), COUNT(DISTINCT city) FROM test_patients
SELECT city FROM test_customers GROUP BY 1 HAVING length(city) <> 4
-- diffix/pg_diffix test/sql/validation_untrusted.sql, grouped, as that system does by itself
SELECT substring(city, 1, 2), COUNT(*) FROM test_customers GROUP BY 1
SELECT floor(discount), COUNT(*) FROM test_customers GROUP BY 1
SELECT ceil(discount), COUNT(*) FROM test_customers GROUP BY 1
SELECT round(discount), COUNT(*) FROM test_customers GROUP BY 1
SELECT diffix.floor_by(discount, 2), COUNT(*) FROM test_customers GROUP BY 1
SELECT width_bucket(discount, 2, 200, 5), COUNT(*) FROM test_customers GROUP BY 1
