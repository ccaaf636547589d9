SELECT COUNT(*) AS n FROM people
SELECT COUNT(age) FROM people
SELECT SUM(educ) FROM people
SELECT AVG(educ) AS a FROM people
SELECT STDDEV(educ) FROM people
SELECT VARIANCE(educ) FROM people
SELECT SUM(educ * age + 4 + LOG(age + 2)) AS s FROM people
SELECT age, sex, SUM(educ) AS s FROM people GROUP BY age, sex ORDER BY age DESC, sex
SELECT COUNT(*) AS n, SUM(educ), AVG(educ), VARIANCE(educ), STDDEV(educ) FROM people WHERE educ > 0 AND educ < 15
SELECT VARIANCE(educ) AS v, town FROM people GROUP BY town
SELECT (VARIANCE(educ)) AS v, town FROM people GROUP BY town
SELECT sex, SUM(income / 10000) AS s, SUM(educ) FROM people GROUP BY sex HAVING NOT (sex = 'f') ORDER BY s DESC LIMIT 10
SELECT town, SUM(income / 100000) AS s FROM people GROUP BY town HAVING town = 'Rome'
SELECT POWER(AVG(age), 2) FROM people
SELECT 1 + AVG(age) FROM people
SELECT SUM(age) FROM people AS p
SELECT COUNT(*) FROM people WHERE town LIKE 'R%'
SELECT SUM(educ) FROM people GROUP BY LOG(CASE WHEN age < 50 THEN 50 ELSE 1 END)
SELECT COUNT(educ) FROM people GROUP BY CASE WHEN age < 50 THEN 50 ELSE 1 END
SELECT CASE WHEN age < 50 THEN 50 ELSE 1 END AS g, COUNT(educ) FROM people GROUP BY CASE WHEN age < 50 THEN 50 ELSE 1 END
SELECT age, SUM(educ) AS s FROM people GROUP BY age HAVING SUM(educ) > 1 ORDER BY age
SELECT age AS a, SUM(educ) FROM people GROUP BY a ORDER BY a
SELECT SUM(age) AS s FROM people GROUP BY town, CASE WHEN age > 90 THEN 1 ELSE 0 END ORDER BY s
SELECT SUM(CASE WHEN age > 80 THEN 1 ELSE 0 END) AS a, SUM(age) FROM people
SELECT (2 * (SUM(CASE WHEN age > 90 THEN 1 ELSE 0 END))) AS s FROM people
SELECT income, COUNT(1) AS n FROM people GROUP BY income
SELECT EXTRACT(YEAR FROM born) AS y, COUNT(*) FROM people GROUP BY EXTRACT(YEAR FROM born)
SELECT DATE_TRUNC('month', born) AS m, COUNT(*) FROM people GROUP BY 1 ORDER BY 1
SELECT EXTRACT(HOUR FROM seen), COUNT(*) FROM visits GROUP BY 1
SELECT age AS "my age", 3 * COS(COUNT(*)) AS x, AVG(educ) AS "my avg" FROM people GROUP BY age ORDER BY age, "my avg"
SELECT age, COUNT(*) FROM people WHERE age BETWEEN 18 AND 30 GROUP BY age
SELECT age, COUNT(*) FROM people WHERE age NOT BETWEEN 18 AND 30 GROUP BY age
SELECT COUNT(*) FROM people WHERE town IN ('Rome', 'Oslo')
SELECT town, COUNT(*) FROM people WHERE town NOT IN ('Rome', 'Oslo') GROUP BY town
SELECT CAST(age AS VARCHAR) AS a, COUNT(*) FROM people GROUP BY age
SELECT UPPER(town) AS t, COUNT(*) FROM people GROUP BY town
SELECT CONCAT(age, town) AS t, COUNT(*) FROM people GROUP BY age, town
SELECT COALESCE(age, 1) AS a, COUNT(*) FROM people GROUP BY COALESCE(age, 1) ORDER BY a
SELECT TRIM(town) AS t, COUNT(*) FROM people GROUP BY TRIM(town)
SELECT SUBSTRING(town FROM 1 FOR 2) AS t, COUNT(*) FROM people GROUP BY town
SELECT POSITION('m' IN town) AS p, COUNT(*) FROM people GROUP BY town
SELECT CHAR_LENGTH(town) AS l, COUNT(*) FROM people GROUP BY town
SELECT SUM(people.age) AS a, SUM(age) AS b FROM people
SELECT t.sex AS a, SUM(t.age) AS b FROM people AS t GROUP BY t.sex
SELECT age AS a, SUM(educ) FROM people WHERE age IS NOT NULL GROUP BY age
SELECT "größe", COUNT(*) FROM people GROUP BY "größe"
SELECT COUNT("alias"."age") AS n FROM people AS "alias"
SELECT age, 3 * COUNT(*) AS a, CASE WHEN COUNT(*) > 10 THEN 'large' ELSE 'small' END AS b FROM people GROUP BY age
SELECT age, CASE WHEN age IN (20, 30) THEN 'round' ELSE '-' END AS r, COUNT(*) FROM people GROUP BY age
SELECT age, CASE WHEN COUNT(*) BETWEEN 0 AND 10 THEN 0 ELSE 1 END AS r FROM people GROUP BY age
SELECT age, CASE WHEN age IS NULL THEN 'none' ELSE 'some' END AS r, COUNT(*) FROM people GROUP BY age
SELECT COUNT(*) FROM people WHERE born BETWEEN '1900-01-01' AND '2025-01-01'
SELECT CASE WHEN SUM(age) > 90 THEN 90 WHEN SUM(age) < 10 THEN 10 ELSE 0 END AS s FROM people
SELECT age, COUNT(*) AS n FROM people GROUP BY age LIMIT 20 OFFSET 1
SELECT COUNT(*) FROM people WHERE town ILIKE 'r%'
SELECT SUM(-100 * age) FROM people WHERE age = 40
SELECT AVG(s) FROM (SELECT SUM(income) AS s FROM people GROUP BY age) AS q
SELECT AVG(s) FROM (SELECT SUM(t.income) AS s FROM people AS t GROUP BY age) AS q
SELECT SUM(a), SUM(b) FROM (SELECT LOG(income + 1.) AS a, SQRT(income) AS b FROM people) AS q
WITH a AS (SELECT age, town, COUNT(*) AS n FROM people GROUP BY age, town ORDER BY age), b AS (SELECT 2 * age AS two, town, n FROM a) SELECT two, COUNT(*) FROM b GROUP BY two LIMIT 15
SELECT sex, COUNT(DISTINCT age), SUM(DISTINCT age), VARIANCE(DISTINCT age), STDDEV(DISTINCT age) FROM people GROUP BY sex
SELECT SUM(a), SUM(b) FROM (SELECT SUM(DISTINCT income) AS a, SUM(DISTINCT age) AS b FROM people GROUP BY sex HAVING COUNT(*) > 5) AS q
SELECT DISTINCT SUM(age) FROM people
SELECT SUM(DISTINCT age) FROM people WHERE sex = 'f' HAVING COUNT(*) > 5
SELECT COUNT(*), SUM(DISTINCT age) FROM people GROUP BY CEIL(income / 100)
WITH a AS (SELECT * FROM people), b AS (SELECT * FROM people) SELECT COUNT(*), SUM(DISTINCT a.age) FROM a JOIN b ON a.id = b.id
SELECT COUNT(*), VAR(age) AS v FROM study.people
SELECT married, educ, AVG(age) FROM study.people GROUP BY married, educ
SELECT 3 AS three, p.married, educ, AVG(income) FROM people AS p GROUP BY educ, married
SELECT educ FROM study.people GROUP BY educ
SELECT SUM(age) * 1 AS age FROM people
SELECT PI(), POWER(AVG(age), 2) FROM people
SELECT SUM(age) FROM people GROUP BY married, CASE WHEN age > 90 THEN 1 ELSE 0 END
SELECT educ, COUNT(DISTINCT id) AS n FROM people GROUP BY educ HAVING n > 50
SELECT educ, COUNT(*) FROM people GROUP BY educ HAVING (COUNT(*) / CAST(educ AS INTEGER)) > 5
SELECT sex AS educ, educ AS sex, COUNT(*) AS n FROM people GROUP BY sex, educ HAVING sex = 'f'
SELECT COUNT(*) * 5 AS c, married AS m FROM people GROUP BY married ORDER BY c DESC
SELECT age, married, COUNT(*) AS n, SUM(income) AS income FROM people GROUP BY age, married ORDER BY married, age DESC LIMIT 10
SELECT COUNT(DISTINCT id) AS n, COUNT(DISTINCT "größe") FROM people
SELECT LN(COUNT(*)), CEIL(COUNT(*)), ATANH(COUNT(*) / 1000000.0), LOG(2, COUNT(*)), DEGREES(PI() / 4) FROM people
SELECT town, SUM(income) AS t, AVG(income) AS a, AVG(age) FROM people WHERE married = TRUE GROUP BY town
SELECT STDEV(age) FROM people
SELECT COUNT(*) FROM (SELECT * FROM people) AS p
SELECT SUM(age + income) FROM people
SELECT SUM(CASE WHEN age > 90 THEN 1 ELSE 0 END) AS a FROM people
SELECT kind, COUNT(id) AS n, SUM(spent) FROM (SELECT spent, t.* FROM visits JOIN (SELECT id, kind FROM (members JOIN plans USING (plan)) AS q) AS t USING (id)) AS z GROUP BY kind ORDER BY kind
SELECT kind, AVG(spent) FROM members JOIN visits USING (id) JOIN plans USING (plan) GROUP BY kind ORDER BY kind
SELECT page, COUNT(*) FROM visits GROUP BY page
SELECT page, COUNT(DISTINCT id) FROM visits GROUP BY page
SELECT c, COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM visits GROUP BY page) GROUP BY c
SELECT c, COUNT(*) FROM (SELECT id, COUNT(*) AS c FROM visits GROUP BY id) t GROUP BY c ORDER BY c
SELECT COUNT(*) FROM (SELECT page, COUNT(*) AS c FROM visits GROUP BY page HAVING COUNT(*) > 10) t
SELECT AVG(m) FROM (SELECT id, MAX(spent) AS m FROM visits GROUP BY id) t
SELECT region, COUNT(*) FROM visits JOIN towns ON visits.town = towns.name GROUP BY region
SELECT region, COUNT(*) FROM visits, towns WHERE visits.town = towns.name AND spent > 3 GROUP BY region
SELECT region, SUM(spent) FROM towns JOIN visits ON visits.town = towns.name GROUP BY region
SELECT COUNT(*) FROM visits WHERE town IN (SELECT name FROM towns WHERE region = 'south')
SELECT COUNT(*) FROM visits WHERE town NOT IN (SELECT name FROM towns)
SELECT region, town, COUNT(*) FROM visits JOIN towns ON visits.town = towns.name GROUP BY ROLLUP (region, town)
SELECT sex, married, COUNT(*), GROUPING(sex, married) FROM people GROUP BY CUBE (sex, married)
SELECT sex, married, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (married), ())
SELECT MIN(born), MAX(born) FROM people
SELECT town, MAX(seen) FROM visits GROUP BY town
SELECT MEDIAN(age), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) FROM people
SELECT COUNT(*) FILTER (WHERE age > 40), SUM(income) FILTER (WHERE sex = 'f') FROM people
SELECT DISTINCT town FROM people
SELECT MIN(age), MAX(age), MEAN(age), VAR_POP(age) FROM people
SELECT SUM(spent) / COUNT(*) AS each, ROUND(AVG(spent), 2), ABS(SUM(spent)), SQRT(COUNT(*)), EXP(AVG(spent) / 100) FROM visits
SELECT ANON_COUNT(*) FROM people GROUP BY age
SELECT APPROX_COUNT_DISTINCT(town), COUNT_IF(age > 40) FROM people
EXPLAIN SELECT town, COUNT(*), SUM(income) FROM people GROUP BY town
SELECT COUNT(*) FROM (SELECT id FROM visits UNION ALL SELECT id FROM people) t
SELECT COUNT(*) FROM (SELECT DISTINCT id, town FROM visits) t
SELECT COUNT(*) FROM visits a JOIN people b ON a.id = b.id
SELECT b.sex, COUNT(*) FROM visits a LEFT JOIN people b ON a.id = b.id GROUP BY b.sex
-- refused
SELECT * FROM people -> would show records
SELECT age FROM people WHERE age > 100 -> would show records
SELECT 3 AS three, p.married, educ, AVG(income) FROM people AS p GROUP BY educ -> neither in GROUP BY nor counted
SELECT CASE WHEN age > 90 THEN 1 ELSE 0 END AS age FROM people -> neither in GROUP BY nor counted
SELECT a.id, b.income FROM people AS a JOIN people AS b ON b.id = a.id -> neither in GROUP BY nor counted
SELECT SUM(SUM(age)) FROM people -> is an aggregate
SELECT educ, AVG(income) FROM people GROUP BY income -> neither in GROUP BY nor counted
SELECT TOP 5 educ, COUNT(*) FROM people GROUP BY educ -> write LIMIT
SELECT RANDOM(), COUNT(*) FROM people -> another value every time
SELECT CURRENT_TIMESTAMP - seen, COUNT(*) FROM visits GROUP BY seen -> another value every time
SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI (1) REPEATABLE (200) -> no plain table
SELECT STD(age) FROM people -> write STDDEV
SELECT ANON_COUNT(*, 0.1) FROM people GROUP BY age -> whose noise epsilon= pays for
SELECT CORR(age, income) FROM people -> other aggregates are not
SELECT STRING_AGG(town, ',') FROM people -> other aggregates are not
SELECT MODE() WITHIN GROUP (ORDER BY age) FROM people -> write PERCENTILE_CONT
SELECT age, RANK() OVER (ORDER BY COUNT(*)) FROM people GROUP BY age -> other records
SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM visits -> UNION is not answered
SELECT COUNT(*) FROM people WHERE income + 1 > (SELECT MAX(income) FROM people) -> ask for a number first
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id) -> JOIN a public table
SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM visits) -> over a protected table
SELECT COUNT(*) FROM people a JOIN people b ON a.town = b.town -> joins two protected tables
SELECT COUNT(*) FROM people CROSS JOIN towns -> only JOIN and LEFT JOIN
SELECT COUNT(*) FROM (SELECT id FROM visits ORDER BY seen LIMIT 10) t -> which rows come first
SELECT SUM(seen) FROM visits -> compute a number from it first
SELECT COUNT(*) + LAPLACE(1) FROM people -> there is no function LAPLACE
DROP TABLE people -> DROP is not answered
