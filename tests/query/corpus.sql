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
SELECT COUNT(ALL age) FROM people
SELECT sex, SUM(ALL income) FROM people GROUP BY sex
SELECT COUNT(*) AS n FROM people WHERE age >= 30 AND NOT married
SELECT COUNT(*) FROM people WHERE age <> 30 OR educ IS NULL
SELECT COUNT(*) FROM people WHERE (age > 30 AND sex = 'f') OR (age < 30 AND sex = 'm')
SELECT COUNT(*) FROM people WHERE married IS TRUE AND town IS NOT NULL
SELECT COUNT(*) FROM people WHERE age % 20 = 0
SELECT COUNT(*) FROM people WHERE income / 1000 > 12.5
SELECT COUNT(*) FROM people WHERE LENGTH(town) = 4
SELECT COUNT(*) FROM people WHERE born < DATE '1970-01-20'
SELECT COUNT(*) FROM people WHERE born >= '1970-01-05'::date AND born < '1970-01-20'::date
SELECT COUNT(*) FROM visits WHERE seen >= TIMESTAMP '2026-01-01 12:00:00'
SELECT COUNT(*) FROM visits WHERE EXTRACT(DOW FROM seen) IN (0, 6)
SELECT COUNT(*) FROM visits WHERE seen BETWEEN '2026-01-01' AND '2026-01-02'
SELECT page, COUNT(*) FROM visits WHERE spent > 3.5 GROUP BY page ORDER BY COUNT(*) DESC
SELECT page, COUNT(*) AS n FROM visits GROUP BY page ORDER BY n DESC NULLS LAST LIMIT 1
SELECT page, town, COUNT(*) FROM visits GROUP BY page, town ORDER BY 3 DESC, 1
SELECT page, COUNT(*) FROM visits GROUP BY page HAVING COUNT(*) > 5 AND page <> 'N'
SELECT page, COUNT(*) FROM visits GROUP BY page HAVING COUNT(*) BETWEEN 5 AND 50
SELECT page AS p, COUNT(DISTINCT id) AS users FROM visits GROUP BY p ORDER BY users DESC
SELECT CASE married WHEN TRUE THEN 'yes' WHEN FALSE THEN 'no' END AS m, COUNT(*) FROM people GROUP BY 1
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 50 THEN 'middle' ELSE 'old' END AS years, COUNT(*), AVG(income) FROM people GROUP BY 1
SELECT CASE WHEN town IS NULL THEN 'unknown' ELSE town END AS t, COUNT(*) FROM people GROUP BY 1
SELECT SUM(CASE WHEN sex = 'f' THEN income ELSE 0 END) AS f, SUM(CASE WHEN sex = 'm' THEN income ELSE 0 END) AS m FROM people
SELECT COUNT(CASE WHEN age > 40 THEN 1 END) AS n FROM people
SELECT COUNT(CASE WHEN age > 40 THEN id END) * 100.0 / COUNT(*) AS share FROM people
SELECT AVG(CASE WHEN age > 40 THEN 1 ELSE 0 END) FROM people
SELECT SUM(CASE WHEN age < 0 THEN 0 WHEN age > 60 THEN 60 ELSE age END) FROM people
SELECT MAX(CASE WHEN sex = 'f' THEN age END) FROM people
SELECT sex, AVG(CASE WHEN married THEN income END) FROM people GROUP BY sex
SELECT SUM(CASE WHEN age > 80 THEN 1 ELSE 0 END), SUM(CASE WHEN age > 30 THEN 1 ELSE 0 END), COUNT(*) FROM people
SELECT CASE WHEN age > 90 THEN 1 ELSE 0 END AS c, SUM(age) FROM people GROUP BY c ORDER BY c
SELECT CASE WHEN COUNT(*) > 10 THEN COUNT(*) ELSE 0 END FROM people
SELECT CASE WHEN SUM(income) < 10 THEN 10 ELSE SUM(income) END AS r FROM people
SELECT COALESCE(town, 'none') AS t, COUNT(*) FROM people GROUP BY 1 ORDER BY 1
SELECT NULLIF(town, 'Rome') AS t, COUNT(*) FROM people GROUP BY 1
SELECT SUM(COALESCE(age, 0)) FROM people
SELECT SUM(GREATEST(age, 30)), SUM(LEAST(income, 20000)) FROM people
SELECT SUM(ABS(age - 40)) FROM people
SELECT SUM(ROUND(spent)) FROM visits
SELECT SUM(FLOOR(spent / 10)) FROM visits
SELECT AVG(SQRT(age)) FROM people
SELECT AVG(LN(income + 1)) FROM people
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM people GROUP BY 1 ORDER BY 1
SELECT age / 10 AS d, COUNT(*) FROM people GROUP BY d
SELECT age - age % 10 AS d, COUNT(*) FROM people GROUP BY 1
SELECT ROUND(spent / 10) AS bucket, COUNT(*) FROM visits GROUP BY 1
SELECT CEIL(spent / 5) AS bucket, COUNT(DISTINCT id) FROM visits GROUP BY 1
SELECT LOWER(town) AS t, COUNT(*) FROM people GROUP BY LOWER(town)
SELECT LEFT(town, 1) AS t, COUNT(*) FROM people GROUP BY 1
SELECT SUBSTRING(town, 1, 2) AS t, COUNT(*) FROM people GROUP BY 1
SELECT REPLACE(town, 'R', 'r') AS t, COUNT(*) FROM people GROUP BY 1
SELECT LENGTH(town) AS l, AVG(age) FROM people GROUP BY 1
SELECT town || '-' || sex AS t, COUNT(*) FROM people GROUP BY 1
SELECT SPLIT_PART(id, 'u', 2) AS part, COUNT(*) FROM people GROUP BY 1
SELECT CAST(age AS TEXT) AS t, COUNT(*) FROM people GROUP BY 1
SELECT CAST(spent AS INTEGER) AS s2, COUNT(*) FROM visits GROUP BY 1
SELECT age::double precision / 2 AS h, COUNT(*) FROM people GROUP BY 1
SELECT EXTRACT(MONTH FROM born) AS m, EXTRACT(DAY FROM born) AS d, COUNT(*) FROM people GROUP BY 1, 2
SELECT DATE_PART('year', born) AS y, COUNT(*) FROM people GROUP BY 1
SELECT DATE_TRUNC('hour', seen) AS h, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1
SELECT DATE_TRUNC('day', seen) AS d, page, COUNT(DISTINCT id) FROM visits GROUP BY 1, 2
SELECT CAST(seen AS DATE) AS d, COUNT(*) FROM visits GROUP BY 1
SELECT sex, married, COUNT(*), AVG(age), SUM(income) FROM people GROUP BY sex, married ORDER BY sex, married
SELECT sex, COUNT(*), VAR_SAMP(age), STDDEV_SAMP(age), STDDEV_POP(age) FROM people GROUP BY sex
SELECT sex, MEDIAN(income) FROM people GROUP BY sex
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age), PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) FROM people
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY income) FROM people
SELECT town, PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY spent DESC) FROM visits GROUP BY town
SELECT MIN(spent), MAX(spent) FROM visits
SELECT page, MIN(seen), MAX(seen) FROM visits GROUP BY page
SELECT MEDIAN(born) FROM people
SELECT MAX(income) - MIN(income) AS reach FROM people
SELECT AVG(age) FILTER (WHERE sex = 'f') - AVG(age) FILTER (WHERE sex = 'm') AS gap FROM people
SELECT town, COUNT(*) FILTER (WHERE age > 40) * 1.0 / COUNT(*) AS share FROM people GROUP BY town
SELECT COUNT(DISTINCT town) FROM people
SELECT COUNT(DISTINCT (town, sex)) FROM people
SELECT COUNT(DISTINCT CASE WHEN age > 40 THEN town END) FROM people
SELECT page, COUNT(*), COUNT(DISTINCT id), COUNT(*) / COUNT(DISTINCT id) AS each FROM visits GROUP BY page
SELECT AVG(DISTINCT age), COUNT(DISTINCT age) FROM people
SELECT sex, SUM(DISTINCT income), VARIANCE(DISTINCT age) FROM people GROUP BY sex
SELECT LOG(COUNT(*)) FROM people
SELECT LOG(10, COUNT(*)), LN(SUM(income)) FROM people
SELECT LOG2(COUNT(*)) FROM people
SELECT SQRT(SUM(income)), POWER(COUNT(*), 2), EXP(AVG(spent)) FROM people JOIN visits USING (id)
SELECT SIN(AVG(age)), TAN(AVG(age)), SIGN(SUM(income)) FROM people
SELECT ROUND(AVG(age), 1), CEIL(AVG(age)), FLOOR(AVG(age)), TRUNC(AVG(age)) FROM people
SELECT MOD(COUNT(*), 7) FROM people
SELECT DEGREES(AVG(age)), RADIANS(AVG(age)), CBRT(COUNT(*)) FROM people
SELECT GREATEST(COUNT(*), 0), LEAST(AVG(age), 100) FROM people
SELECT CAST(AVG(age) AS INTEGER) FROM people
SELECT 100.0 * SUM(income) / NULLIF(COUNT(*), 0) FROM people
SELECT COALESCE(SUM(income), 0) FROM people
SELECT UPPER(town) AS t, ROUND(LN(COUNT(*)), 2) AS l FROM people GROUP BY town ORDER BY l
SELECT -SUM(income) FROM people
SELECT (COUNT(*)) AS n FROM people
SELECT (((COUNT(*)))) * 2 + 1 FROM people
SELECT 'people' AS what, COUNT(*) AS n FROM people
SELECT 1, 2.5, NULL, COUNT(*) FROM people
SELECT COUNT(*) > 10 AS many FROM people
SELECT COUNT(*) AS "Number of people" FROM people
SELECT "people"."sex" AS "Sex", COUNT(*) FROM "people" GROUP BY "people"."sex"
SELECT P.SEX, COUNT(*) FROM PEOPLE P GROUP BY P.SEX
SELECT Sex, Count(*) From people Group By Sex Order By Sex
SELECT COUNT(*) FROM public.people
SELECT study.people.sex, COUNT(*) FROM study.people GROUP BY study.people.sex
SELECT p.sex, AVG(p.age) FROM study.people p GROUP BY p.sex
SELECT COUNT(*) FROM study.people p JOIN study.visits v ON p.id = v.id
SELECT sex FROM people GROUP BY sex
SELECT sex, married FROM people GROUP BY sex, married ORDER BY 1, 2
SELECT sex FROM people GROUP BY sex HAVING COUNT(*) > 3
SELECT DISTINCT sex, married FROM people
SELECT DISTINCT age / 10 AS d FROM people ORDER BY d
SELECT DISTINCT sex, COUNT(*) FROM people GROUP BY sex
SELECT town, COUNT(*) FROM people GROUP BY town OFFSET 1
SELECT town, COUNT(*) FROM people GROUP BY town ORDER BY town FETCH FIRST 2 ROWS ONLY
SELECT page, COUNT(*) FROM visits GROUP BY ROLLUP (page)
SELECT page, town, COUNT(*), SUM(spent) FROM visits GROUP BY CUBE (page, town) HAVING COUNT(*) > 2
SELECT sex, married, AVG(age) FROM people GROUP BY GROUPING SETS ((sex, married), (sex), ())
SELECT COUNT(*) FROM (SELECT id FROM visits WHERE spent > 3) AS t
SELECT page, COUNT(*) FROM (SELECT page, spent * 2 AS twice FROM visits) AS t WHERE twice > 20 GROUP BY page
SELECT AVG(x) FROM (SELECT age * 2 AS x FROM people) AS t
SELECT SUM(clamped) FROM (SELECT CASE WHEN spent > 20 THEN 20 WHEN spent < 0 THEN 0 ELSE spent END AS clamped FROM visits) AS t
SELECT page, SUM(spent) FROM (SELECT * FROM (SELECT page, spent FROM visits WHERE town = 'Rome') AS i) AS o GROUP BY page
SELECT d, COUNT(*) FROM (SELECT FLOOR(age / 10) AS d FROM people) AS t GROUP BY d
SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM visits GROUP BY id) AS t WHERE n < 0
SELECT COUNT(*) FROM (SELECT id, SUM(spent) AS s FROM visits GROUP BY id HAVING SUM(spent) > 10) AS t
SELECT b, COUNT(*) FROM (SELECT id, CASE WHEN SUM(spent) > 20 THEN 'big' ELSE 'small' END AS b FROM visits GROUP BY id) AS t GROUP BY b
SELECT COUNT(*) FROM (SELECT id, COUNT(DISTINCT page) AS p FROM visits GROUP BY id) AS t WHERE p = 2
SELECT MAX(s) FROM (SELECT id, SUM(spent) AS s FROM visits GROUP BY id) AS t
SELECT h, COUNT(*) FROM (SELECT id, MIN(seen) AS h FROM visits GROUP BY id) AS t GROUP BY h
SELECT COUNT(*) FROM (SELECT id, MAX(seen) AS last FROM visits GROUP BY id) AS t WHERE last > '2026-01-02'
SELECT COUNT(*) FROM (SELECT id, MEDIAN(spent) AS m, STDDEV(spent) AS d FROM visits GROUP BY id) AS t WHERE m > 10 AND d > 5
SELECT AVG(s) FROM (SELECT sex, SUM(income) AS s FROM people GROUP BY sex) AS t
SELECT n, COUNT(*) AS m FROM (SELECT town, page, COUNT(*) AS n FROM visits GROUP BY town, page) AS t GROUP BY n ORDER BY n
SELECT page, n, COUNT(*) FROM (SELECT page, id, COUNT(*) AS n FROM visits GROUP BY page, id) AS t GROUP BY page, n
WITH t AS (SELECT id, COUNT(*) AS n FROM visits GROUP BY id) SELECT n, COUNT(*) FROM t GROUP BY n
WITH t AS (SELECT * FROM people WHERE age > 30) SELECT sex, COUNT(*) FROM t GROUP BY sex
WITH t AS (SELECT age, sex FROM people), u AS (SELECT age * 2 AS x, sex FROM t) SELECT sex, COUNT(*) FROM u WHERE x > 50 GROUP BY sex
WITH t (k, n) AS (SELECT page, COUNT(*) FROM visits GROUP BY page) SELECT COUNT(*) FROM t WHERE n > 3
WITH a AS (SELECT id FROM visits WHERE page = 'H'), b AS (SELECT id FROM visits WHERE page = 'N') SELECT COUNT(*) FROM (SELECT id FROM a UNION ALL SELECT id FROM b) AS t
SELECT COUNT(*) FROM (SELECT id FROM visits UNION SELECT id FROM people) AS t
SELECT town, COUNT(*) FROM (SELECT town FROM visits UNION ALL SELECT town FROM people) AS t GROUP BY town
SELECT COUNT(*) FROM (SELECT DISTINCT page FROM visits) AS t
SELECT COUNT(*) FROM visits INNER JOIN towns ON towns.name = visits.town
SELECT region, COUNT(DISTINCT id) FROM visits LEFT JOIN towns ON visits.town = towns.name GROUP BY region
SELECT t.region, AVG(v.spent) FROM visits v JOIN towns t ON v.town = t.name WHERE v.page = 'H' GROUP BY t.region
SELECT region, kind, COUNT(*) FROM people JOIN members USING (id) JOIN plans USING (plan) JOIN towns ON town = name GROUP BY region, kind
SELECT kind, COUNT(*) FROM members m, plans p WHERE m.plan = p.plan GROUP BY kind
SELECT sex, COUNT(*) FROM people p, visits v WHERE p.id = v.id AND v.spent > 5 GROUP BY sex
SELECT sex, SUM(spent) FROM people JOIN visits USING (id) GROUP BY sex
SELECT p.sex, v.page, COUNT(*) FROM people p JOIN visits v ON p.id = v.id WHERE p.age > 30 GROUP BY 1, 2
SELECT COUNT(DISTINCT p.id) FROM people p JOIN visits v ON v.id = p.id
SELECT COUNT(*), COUNT(v.id) FROM people p LEFT JOIN visits v ON p.id = v.id
SELECT c, COUNT(*) FROM (SELECT p.id, COUNT(v.id) AS c FROM people p LEFT JOIN visits v ON p.id = v.id GROUP BY p.id) AS t GROUP BY c ORDER BY c DESC
SELECT sex, AVG(n) FROM people JOIN (SELECT id, COUNT(*) AS n FROM visits GROUP BY id) t USING (id) WHERE n < 0 GROUP BY sex
SELECT COUNT(*) FROM visits a JOIN visits b ON a.id = b.id WHERE a.page < b.page
SELECT COUNT(*) FROM visits a JOIN visits b ON a.id = b.id AND a.town = b.town
SELECT COUNT(*) FROM visits a JOIN visits b ON a.id = b.id JOIN visits c ON b.id = c.id
SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM visits WHERE page = 'H')
SELECT COUNT(*) FROM visits WHERE id IN (SELECT id FROM people WHERE age > 30)
SELECT sex, COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id AND spent > 12) GROUP BY sex
SELECT sex, AVG(age) FROM people p WHERE NOT EXISTS (SELECT * FROM visits v WHERE v.id = p.id) GROUP BY sex
SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM visits GROUP BY id HAVING COUNT(*) > 1)
SELECT COUNT(*) FROM people p WHERE p.town IN (SELECT town FROM visits v WHERE v.id = p.id)
SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM towns WHERE towns.name = people.town AND region = 'south')
SELECT COUNT(*) FROM people WHERE NOT EXISTS (SELECT 1 FROM towns WHERE towns.name = people.town)
SELECT COUNT(*) FROM people WHERE town = (SELECT name FROM towns WHERE region = 'south')
SELECT COUNT(*) FROM people WHERE educ > (SELECT COUNT(*) FROM towns)
SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM towns) AS each FROM visits
SELECT town, COUNT(*) FROM visits WHERE town IN (SELECT name FROM towns) GROUP BY town HAVING COUNT(*) > (SELECT COUNT(*) FROM plans)
SELECT page, town, SUM(spent) AS t, SUM(spent * 0.9) AS less, SUM(spent * 0.9 * 1.1) AS taxed, AVG(spent), COUNT(*) FROM visits WHERE seen <= '2026-01-02' GROUP BY page, town ORDER BY page, town
SELECT SUM(spent * 0.05) AS revenue FROM visits WHERE seen >= '2026-01-01' AND seen < '2026-01-02' AND spent BETWEEN 2 AND 30
SELECT page, SUM(CASE WHEN town = 'Rome' OR town = 'Oslo' THEN 1 ELSE 0 END) AS high, SUM(CASE WHEN town <> 'Rome' AND town <> 'Oslo' THEN 1 ELSE 0 END) AS low FROM visits GROUP BY page
SELECT 100.00 * SUM(CASE WHEN town LIKE 'R%' THEN spent ELSE 0 END) / SUM(spent) AS share FROM visits
SELECT town, COUNT(DISTINCT id) AS n FROM visits WHERE page <> 'X' AND town NOT LIKE 'A%' AND spent IN (1, 2, 3) GROUP BY town ORDER BY n DESC, town
SELECT SUM(spent) / 7.0 AS weekly FROM visits WHERE page = 'H' AND spent < 20
SELECT SUM(spent) FROM visits WHERE (page = 'H' AND spent BETWEEN 1 AND 11) OR (page = 'N' AND spent BETWEEN 10 AND 20)
SELECT SUBSTRING(town FROM 1 FOR 1) AS code, COUNT(*), SUM(income) FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id) GROUP BY 1
SELECT EXTRACT(YEAR FROM seen) AS y, kind, SUM(spent) FROM visits JOIN members USING (id) JOIN plans USING (plan) GROUP BY 1, 2
SELECT page, COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = v.id AND p.age < 40) GROUP BY page ORDER BY page
EXPLAIN SELECT sex, AVG(age) FROM people WHERE id IN (SELECT id FROM visits) GROUP BY sex
EXPLAIN SELECT c, COUNT(*) FROM (SELECT id, COUNT(*) AS c FROM visits GROUP BY id) AS t GROUP BY c
SELECT ANON_SUM(age) FROM people
SELECT ANON_AVG(age) AS a FROM people GROUP BY sex
SELECT COUNT(*) FROM people WHERE town ~ '^R'
SELECT COUNT(*) FROM people WHERE town IS DISTINCT FROM 'Rome'
SELECT IIF(age > 40, 'old', 'young') AS a, COUNT(*) FROM people GROUP BY 1
SELECT WIDTH_BUCKET(age, 0, 100, 10) AS b, COUNT(*) FROM people GROUP BY 1
SELECT TO_CHAR(seen, 'YYYY-MM') AS m, COUNT(*) FROM visits GROUP BY 1
SELECT COUNT(*) FROM people WHERE id = ANY (SELECT id FROM visits)
SELECT STDDEV(age) / AVG(age) AS cv FROM people
SELECT id, COUNT(*) AS n FROM visits GROUP BY id
SELECT COUNT(id) FROM people GROUP BY id
SELECT COUNT(*) FROM people RIGHT JOIN visits USING (id)
SELECT COUNT(*) FROM people NATURAL JOIN visits
SELECT SUM(educ * age + 4 + LOG(age + 3)) AS s FROM people
SELECT town, SUM(income / 100000) AS a, SUM(educ) AS b FROM people GROUP BY town HAVING town = 'Oslo'
SELECT SUM(educ) AS s, COUNT(educ) AS n, AVG(educ) AS a FROM people WHERE educ BETWEEN 1 AND 14 GROUP BY sex
SELECT SUM(age) AS s FROM people GROUP BY town, CASE WHEN age > 40 THEN 'a' ELSE 'b' END
SELECT CASE WHEN age > 80 THEN 1 ELSE 0 END AS c, SUM(age) AS s FROM people GROUP BY town, CASE WHEN age > 80 THEN 1 ELSE 0 END ORDER BY s
SELECT CASE WHEN age > 90 THEN 1 ELSE 0 END AS c, SUM(age) AS s FROM people GROUP BY c ORDER BY s
SELECT income, COUNT(age) AS n FROM people GROUP BY income
SELECT income, COUNT(*) AS n, SUM(DISTINCT age) AS s FROM people GROUP BY income ORDER BY income, s LIMIT 5
SELECT age AS "my age", 3 * COS(COUNT(*)) AS x, AVG(educ) AS "mean" FROM people GROUP BY "my age" ORDER BY "my age", "mean"
SELECT SUM(income) AS s FROM people GROUP BY income
SELECT SUM(100 * age) AS s FROM people WHERE age = 40
SELECT town, COUNT(*) FROM people WHERE town NOT IN ('Rome', 'Oslo', 'Bern') GROUP BY town
SELECT age, CASE WHEN age BETWEEN 10 AND 40 THEN 0 ELSE 1 END AS c, COUNT(*) AS n FROM people GROUP BY age
SELECT CASE WHEN SUM(age) > 90 THEN 90 ELSE SUM(age) END AS s FROM people
SELECT COUNT(DISTINCT age), SUM(DISTINCT age), AVG(DISTINCT age), VARIANCE(DISTINCT age), STDDEV(DISTINCT age) FROM people
SELECT sex, SUM(age) AS a, VARIANCE(age) AS v, SUM(DISTINCT age) AS d, SUM(DISTINCT income) AS e FROM people GROUP BY sex
SELECT 2 * SUM(3 * LOG("größe" + 5)) FROM people GROUP BY 3 * "größe"
SELECT sex AS "MY_COL", COUNT("größe") FROM people GROUP BY "MY_COL"
SELECT COUNT(age) FROM people AS "a b" WHERE "a b".age > 20
SELECT SUM(a), SUM(b), SUM(c) FROM (SELECT LN(income + 2) AS a, SQRT(income) AS b, income / 2 AS c FROM people) AS q
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.id = p.id)
SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM visits)
SELECT COUNT(*) FROM people WHERE town SIMILAR TO 'R%'
SELECT TOP 5 educ, COUNT(*) FROM people GROUP BY educ
SELECT STD(age) FROM people
SELECT SD(age), ANON_STDDEV_POP(age), ANON_VAR_POP(age) FROM people
SELECT ANON_PERCENTILE_CONT(age, 0.5) FROM people
SELECT PERCENTILE_CONT(age, 0.9), ANON_MEDIAN(age) FROM people
SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 50 AND 30
SELECT COUNT(*) FROM people WHERE town NOT SIMILAR TO '(R|O)(o|s)%'
SELECT TOP (3) sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC FETCH FIRST 1 ROWS ONLY
SELECT region, COUNT(*) FROM towns t, plans p, members m, people q WHERE p.plan = m.plan AND t.name = q.town AND q.id = m.id GROUP BY region
SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM people
SELECT ANON_SUM(age CLAMPED BETWEEN 0 AND 120) FROM people
SELECT COUNT(*, contribution_bounds_per_group => (0, 10)) FROM people
SELECT SUM(n) FROM (SELECT id, page, ROW_NUMBER() OVER (PARTITION BY id ORDER BY spent) AS n FROM visits) AS t
SELECT sex, COUNT(*) FROM people GROUP BY sex UNION ALL SELECT 'all', COUNT(*) FROM people
-- refused
SELECT AGE(born) AS a, COUNT(*) FROM people GROUP BY 1 -> The list: wpinq sql --functions
SELECT MD5(town) AS m, COUNT(*) FROM people GROUP BY 1 -> The list: wpinq sql --functions
SELECT COUNT(*) FROM people WHERE age > ALL (SELECT COUNT(*) FROM towns) -> ask for a number first
SELECT BOOL_OR(married) FROM people -> other aggregates are not
SELECT region, COUNT(v.id) FROM towns LEFT JOIN visits v ON v.town = towns.name GROUP BY region -> name the protected table in FROM
SELECT COUNT(*) FROM people WHERE id NOT IN (SELECT id FROM visits) -> write NOT EXISTS
SELECT COUNT(*) FROM people WHERE town IN (SELECT town FROM visits) -> Compare the column of the people
SELECT COUNT(*) FROM people p WHERE spent > (SELECT AVG(spent) FROM visits v WHERE v.id = p.id) -> ask for a number first
SELECT AVG(c) FROM (SELECT COUNT(*) AS c FROM visits) AS t -> aggregate in the query itself
SELECT page, SUM(spent) / (SELECT SUM(spent) FROM visits) FROM visits GROUP BY page -> ask for a number first
SELECT age AS a, ROW_NUMBER() OVER (PARTITION BY sex ORDER BY age) FROM people -> neither in GROUP BY nor counted
SELECT COUNT(*) FROM people FULL JOIN visits USING (id) -> only JOIN and LEFT JOIN
SELECT COUNT(*) FROM people p JOIN visits v ON p.age > v.spent -> Join ON the column of the people
SELECT COUNT(*) FROM nobody -> there are 'towns', 'plans'
SELECT nothing, COUNT(*) FROM people GROUP BY nothing -> there are people.id
SELECT COUNT(*) FROM people GROUP BY COUNT(*) -> group by columns
INSERT INTO people VALUES (1) -> write one SELECT
UPDATE people SET age = 1 -> write one SELECT
SELECT * FROM people -> would show records
SELECT age FROM people WHERE age > 100 -> would show records
SELECT 3 AS three, p.married, educ, AVG(income) FROM people AS p GROUP BY educ -> neither in GROUP BY nor counted
SELECT CASE WHEN age > 90 THEN 1 ELSE 0 END AS age FROM people -> neither in GROUP BY nor counted
SELECT a.id, b.income FROM people AS a JOIN people AS b ON b.id = a.id -> neither in GROUP BY nor counted
SELECT SUM(SUM(age)) FROM people -> is an aggregate
SELECT educ, AVG(income) FROM people GROUP BY income -> neither in GROUP BY nor counted
SELECT RANDOM(), COUNT(*) FROM people -> another value every time
SELECT CURRENT_TIMESTAMP - seen, COUNT(*) FROM visits GROUP BY seen -> another value every time
SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI (1) REPEATABLE (200) -> no plain table
SELECT ANON_COUNT(*, 0.1) FROM people GROUP BY age -> whose noise epsilon= pays for
SELECT CORR(age, income) FROM people -> other aggregates are not
SELECT STRING_AGG(town, ',') FROM people -> other aggregates are not
SELECT MODE() WITHIN GROUP (ORDER BY age) FROM people -> write PERCENTILE_CONT
SELECT age, RANK() OVER (ORDER BY COUNT(*)) FROM people GROUP BY age -> other records
SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM visits -> ask them one by one
SELECT COUNT(*) FROM people WHERE income + 1 > (SELECT MAX(income) FROM people) -> ask for a number first
SELECT COUNT(*) FROM people a JOIN people b ON a.town = b.town -> joins two protected tables
SELECT COUNT(*) FROM people CROSS JOIN towns -> only JOIN and LEFT JOIN
SELECT COUNT(*) FROM (SELECT id FROM visits ORDER BY seen LIMIT 10) t -> which rows come first
SELECT SUM(seen) FROM visits -> compute a number from it first
SELECT COUNT(*) + LAPLACE(1) FROM people -> there is no function LAPLACE
DROP TABLE people -> DROP is not answered
SELECT TOP 5 PERCENT educ, COUNT(*) FROM people GROUP BY educ -> write TOP 10, or LIMIT 10
SELECT educ, COUNT(*) FROM people GROUP BY educ ORDER BY 2 FETCH FIRST 3 ROWS WITH TIES -> write FETCH FIRST 10 ROWS ONLY
SELECT ANON_QUANTILES(age, 4) FROM people -> write PERCENTILE_CONT(x, 0.25) for each share
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) = 1 -> HAVING, or ORDER BY with LIMIT
