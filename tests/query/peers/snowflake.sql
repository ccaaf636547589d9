-- Snowflake docs, user-guide/diff-privacy/differential-privacy-analyst, -privacy-domains, -joins, and dp_interval_low
SELECT COUNT(age) AS count_age FROM t1 where age >= 20 and age <= 100 GROUP BY score
SELECT SUM(num_claims) AS sum_claims, DP_INTERVAL_LOW(sum_claims) FROM t1
SELECT SUM(num_claims) AS sum_claims, DP_INTERVAL_HIGH(sum_claims) FROM t1
SELECT COUNT(num_claims) AS count_claims, DP_INTERVAL_LOW(count_claims), DP_INTERVAL_HIGH(count_claims) FROM t1
SELECT key, COUNT(*) AS c, DP_INTERVAL_LOW(c) FROM t1 GROUP BY key
SELECT key, 1 + COUNT(*) AS c FROM t1 GROUP BY key
SELECT COUNT(*) FROM t1 INNER JOIN t2 ON t1.a=t2.a
SELECT COUNT(*) FROM (SELECT a, COUNT(b) FROM t1 GROUP BY a) AS g1 INNER JOIN (SELECT * FROM t2) AS g2 ON g1.a=g2.a
SELECT COUNT(*) FROM patients LEFT JOIN (SELECT zip_code, ANY_VALUE(state) AS residence_state FROM geo_lookup GROUP BY zip_code) USING (zip_code) WHERE birth_state = residence_state
SELECT COUNT(*) FROM patients WHERE insurance_type = 'Commercial'
SELECT COUNT(DISTINCT patient_id) FROM patients WHERE insurance_type = 'Commercial'
SELECT COUNT(*) FROM (SELECT patient_id, ANY_VALUE(zip_code) AS zip_code FROM patients GROUP BY patient_id) AS p JOIN geo_lookup AS g ON p.zip_code = g.zip_code WHERE state='CA'
SELECT COUNT(bmi) FROM (SELECT patient_id, ANY_VALUE(bmi) as bmi, ANY_VALUE(state) as state FROM patients AS p JOIN geo_lookup AS g ON p.zip_code = g.zip_code GROUP BY patient_id) WHERE state='CA'
SELECT COUNT(num_visits) FROM (SELECT COUNT((visit_reason<>'Regular checkup')::INT) AS num_visits FROM patients WHERE visit_reason IS NOT NULL GROUP BY patient_id) WHERE num_visits > 0 AND num_visits < 20
SELECT COUNT(salary) FROM employees
SELECT COUNT(salary), COUNT(age) FROM employees GROUP BY STATE
-- Snowflake, a published demonstration of privacy policies (3-privacy-aggregation.sql)
SELECT DEPARTMENT, COUNT(DISTINCT EMPLOYEE_ID) AS headcount, ROUND(AVG(SALARY), 2) AS avg_salary, ROUND(AVG(BONUS), 2) AS avg_bonus FROM HRZN_DB.HRZN_SCH.EMPLOYEES GROUP BY DEPARTMENT ORDER BY avg_salary DESC
SELECT department, COUNT(salary) AS headcount, DP_INTERVAL_LOW(headcount) AS headcount_low, DP_INTERVAL_HIGH(headcount) AS headcount_high FROM ( SELECT EMPLOYEE_ID, ANY_VALUE(DEPARTMENT) AS department, ANY_VALUE(SALARY) AS salary FROM HRZN_DB.HRZN_SCH.EMPLOYEES GROUP BY EMPLOYEE_ID ) GROUP BY department
SELECT department, COUNT(salary) AS emp_count, DP_INTERVAL_LOW(emp_count) AS count_low, DP_INTERVAL_HIGH(emp_count) AS count_high FROM ( SELECT EMPLOYEE_ID, ANY_VALUE(DEPARTMENT) AS department, ANY_VALUE(SALARY) AS salary FROM HRZN_DB.HRZN_SCH.EMPLOYEES GROUP BY EMPLOYEE_ID ) WHERE salary > 100000 AND salary < 150000 GROUP BY department
-- Snowflake, the list of supported syntax (differential-privacy-sql-reference): its set operators and joins, each in a query
SELECT COUNT(*) FROM (SELECT patient_id FROM patients UNION ALL SELECT patient_id FROM visits) AS t
SELECT COUNT(*) FROM (SELECT patient_id FROM patients UNION SELECT patient_id FROM visits) AS t
SELECT COUNT(*) FROM (SELECT patient_id FROM patients INTERSECT SELECT patient_id FROM visits) AS t
SELECT COUNT(*) FROM (SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits) AS t
SELECT COUNT(*) FROM (SELECT patient_id FROM patients MINUS SELECT patient_id FROM visits) AS t
SELECT COUNT(*) FROM patients RIGHT OUTER JOIN geo_lookup USING (zip_code)
SELECT COUNT(*) FROM patients LEFT OUTER JOIN visits USING (patient_id)
SELECT COUNT(*) FROM patients FULL OUTER JOIN visits USING (patient_id)
SELECT COUNT(*) FROM patients NATURAL JOIN visits
SELECT MEDIAN(bmi), STDDEV(bmi), VAR_POP(bmi) FROM patients WHERE bmi BETWEEN 10 AND 60
