-- OpenMined/PipelineDP examples/restaurant_visits/run_on_dataframes.py, run_without_frameworks.py, in Python, as SQL
SELECT day, COUNT(*), SUM(spent_money) FROM restaurant_visits GROUP BY day
SELECT day, COUNT(*), COUNT(DISTINCT visitor_id), SUM(spent_money), AVG(spent_money), VARIANCE(spent_money) FROM restaurant_visits GROUP BY day
-- OpenMined/PipelineDP examples/restaurant_visits/run_select_partitions.py, run_on_preaggregated_data.py, as SQL
SELECT day FROM restaurant_visits GROUP BY day
SELECT DISTINCT day FROM restaurant_visits
SELECT day, SUM(c), SUM(s) FROM (SELECT visitor_id, day, COUNT(*) AS c, SUM(spent_money) AS s FROM restaurant_visits GROUP BY visitor_id, day) AS t GROUP BY day
SELECT day, SUM(s) FROM (SELECT visitor_id, day, LEAST(GREATEST(SUM(spent_money), 0), 100) AS s FROM restaurant_visits GROUP BY visitor_id, day) AS t GROUP BY day
SELECT day, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY spent_minutes), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY spent_minutes) FROM restaurant_visits GROUP BY day
-- OpenMined/PipelineDP examples/movie_view_ratings, as SQL
SELECT movie_id, COUNT(*), COUNT(DISTINCT user_id), SUM(rating), AVG(rating) FROM movie_views GROUP BY movie_id
SELECT movie_id, AVG(rating) FROM movie_views WHERE movie_id IN (1, 2, 3) GROUP BY movie_id
SELECT movie_id, SUM(rating), VARIANCE(rating) FROM movie_views GROUP BY movie_id
SELECT COUNT(*), AVG(rating) FROM movie_views
-- OpenMined/PipelineDP examples/codelab/codelab_PipelineDP.ipynb, as SQL
SELECT product_name, COUNT(*) FROM journeys GROUP BY product_name
SELECT product_view_0, SUM(has_conversion) * 1.0 / COUNT(*) AS conversion_rate FROM customer_journeys GROUP BY product_view_0
SELECT product_view_0, product_view_1, AVG(has_conversion), COUNT(*) FROM customer_journeys WHERE product_view_0 <> 'none' AND product_view_1 <> 'none' GROUP BY product_view_0, product_view_1
