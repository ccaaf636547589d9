-- opendp/tumult-analytics doc/tutorials/groupby-queries.rst, queries in Python as SQL
SELECT age, COUNT(id) FROM members WHERE age >= 80 GROUP BY age
SELECT education_level, AVG(age) AS age_average FROM members GROUP BY education_level
SELECT age, COUNT(*) FROM members WHERE age BETWEEN 5 AND 17 GROUP BY age
SELECT age, education_level, COUNT(*) FROM members WHERE age BETWEEN 13 AND 21 GROUP BY age, education_level
-- opendp/tumult-analytics doc/tutorials/simple-transformations.rst, as SQL
SELECT COUNT(*) FROM members WHERE age < 18
SELECT CONCAT(age - age % 10, '-', age - age % 10 + 9) AS binned_age, gender, COUNT(*) FROM members GROUP BY 1, 2
SELECT genre, COUNT(*) FROM (SELECT SPLIT_PART(favorite_genres, ';', 1) AS genre FROM members UNION ALL SELECT SPLIT_PART(favorite_genres, ';', 2) AS genre FROM members UNION ALL SELECT SPLIT_PART(favorite_genres, ';', 3) AS genre FROM members) AS t WHERE genre <> '' GROUP BY genre
SELECT genre, COUNT(*) FROM (SELECT UNNEST(STRING_TO_ARRAY(favorite_genres, ';')) AS genre FROM members) AS t GROUP BY genre
SELECT city, COUNT(*) FROM members JOIN nc_zip_codes USING (zip_code) GROUP BY city ORDER BY COUNT(*) DESC
SELECT county, COUNT(*) FROM members JOIN nc_zip_codes USING (zip_code) GROUP BY county
SELECT city, SUM(books_borrowed) FROM members JOIN nc_zip_codes USING (zip_code) WHERE population > 50000 GROUP BY city
-- opendp/tumult-analytics doc/tutorials/first-steps.rst, privacy-budget-basics.rst, clamping-bounds.rst, as SQL
SELECT COUNT(*) FROM members
SELECT COUNT(*) FROM members WHERE education_level = 'masters-degree' OR education_level = 'doctorate-professional'
SELECT AVG(age) FROM members
SELECT SUM(books_borrowed) FROM members
SELECT SUM(books_borrowed) FROM members WHERE age < 18
SELECT COUNT(*) FROM members WHERE name IS NOT NULL AND age > 17
-- opendp/tumult-analytics doc/tutorials/privacy-id-basics.rst and the reference of QueryBuilder, as SQL
SELECT COUNT(*) FROM checkouts
SELECT COUNT(DISTINCT member_id) FROM checkouts
SELECT genre, COUNT(*) FROM checkouts GROUP BY genre
SELECT genre, COUNT(DISTINCT member_id) FROM checkouts GROUP BY genre
SELECT genre, AVG(age) FROM checkouts JOIN members ON checkouts.member_id = members.id GROUP BY genre
SELECT gender, COUNT(*) FROM checkouts JOIN members ON checkouts.member_id = members.id GROUP BY gender
SELECT n, COUNT(*) FROM (SELECT member_id, COUNT(*) AS n FROM checkouts GROUP BY member_id) AS t GROUP BY n
SELECT genre, COUNT(*) FROM (SELECT member_id, genre, ROW_NUMBER() OVER (PARTITION BY member_id ORDER BY checkout_date) AS place FROM checkouts) AS t WHERE place <= 3 GROUP BY genre
SELECT genre, COUNT(*) FROM (SELECT genre FROM checkouts QUALIFY ROW_NUMBER() OVER (PARTITION BY member_id ORDER BY checkout_date) <= 3) AS t GROUP BY genre
SELECT MIN(age), MAX(age), STDDEV(age), VARIANCE(age) FROM members
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age), MEDIAN(age), PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) FROM members
SELECT gender, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY books_borrowed) FROM members GROUP BY gender
SELECT gender, COUNT(*) FROM members GROUP BY gender HAVING COUNT(*) > 5
SELECT COUNT(DISTINCT zip_code) FROM members
SELECT COUNT(DISTINCT (age, gender)) FROM members
SELECT WIDTH_BUCKET(age, 0, 100, 10) AS bin, COUNT(*) FROM members GROUP BY 1
SELECT DATE_TRUNC('month', date_joined) AS month, COUNT(*) FROM members GROUP BY 1
SELECT COUNT(*) FROM members WHERE date_joined BETWEEN '2020-01-01' AND '2020-12-31'
SELECT SUM(COALESCE(books_borrowed, 0)) FROM members
SELECT gender, AVG(books_borrowed) FROM members WHERE books_borrowed IS NOT NULL GROUP BY gender
SELECT COUNT(*) FROM members WHERE books_borrowed IS NULL
-- opendp/tumult-analytics demos/wmf_demo.ipynb and demos/intro_demo.ipynb, as SQL
SELECT page, country, COUNT(*) FROM pageviews GROUP BY page, country HAVING COUNT(*) > 90
SELECT country, COUNT(DISTINCT actor) FROM pageviews GROUP BY country
SELECT education_level, gender, SUM(books_borrowed) AS total FROM members GROUP BY education_level, gender ORDER BY total DESC
