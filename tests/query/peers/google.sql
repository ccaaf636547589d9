-- google/zetasql docs/differential-privacy.md
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon=1.09, delta=1e-5, privacy_unit_column=id) item, COUNT(*) FROM students GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon=1.09, delta=1e-5, privacy_unit_column=members.id) item, COUNT(*) FROM (SELECT * FROM students) AS members GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-10, privacy_unit_column=id) item, COUNT(quantity) FROM professors GROUP BY item
SELECT item, COUNT(quantity) FROM professors GROUP BY item
-- google/zetasql docs/aggregate-dp-functions.md
SELECT WITH ANONYMIZATION OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1) item, ANON_AVG(quantity CLAMPED BETWEEN 0 AND 100) average_quantity FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=1e20, delta=.01, max_groups_contributed=1) item, ANON_AVG(quantity) average_quantity FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1) item, ANON_COUNT(*) times_requested FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1) item, ANON_COUNT(item CLAMPED BETWEEN 0 AND 100) times_requested FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1) item, ANON_PERCENTILE_CONT(quantity, 0.5 CLAMPED BETWEEN 0 AND 100) percentile_requested FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1) item, ANON_QUANTILES(quantity, 4 CLAMPED BETWEEN 0 AND 100) quantiles_requested FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1) item, ANON_STDDEV_POP(quantity CLAMPED BETWEEN 0 AND 100) pop_standard_deviation FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1) item, ANON_SUM(quantity CLAMPED BETWEEN 0 AND 100) quantity FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=1e20, delta=.01, max_groups_contributed=1) item, ANON_SUM(quantity) quantity FROM view_on_professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1) item, ANON_VAR_POP(quantity CLAMPED BETWEEN 0 AND 100) pop_variance FROM view_on_professors GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id) item, AVG(quantity, contribution_bounds_per_group => (0,100)) average_quantity FROM professors GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=.01, max_groups_contributed=1, privacy_unit_column=id) item, AVG(quantity) average_quantity FROM professors GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id) item, COUNT(*) times_requested FROM professors GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id) item, COUNT(item, contribution_bounds_per_group => (0,100)) times_requested FROM professors GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id) item, PERCENTILE_CONT(quantity, 0.5, contribution_bounds_per_row => (0,100)) percentile_requested FROM professors GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id) item, SUM(quantity, contribution_bounds_per_group => (0,100)) quantity FROM professors GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=.01, max_groups_contributed=1, privacy_unit_column=id) item, SUM(quantity) quantity FROM professors GROUP BY item
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id) item, VAR_POP(quantity, contribution_bounds_per_row => (0,100)) pop_variance FROM professors GROUP BY item
SELECT WITH ANONYMIZATION OPTIONS ( epsilon = 1e20, delta = .01, max_groups_contributed = 1 ) item, AVG(quantity) AS average_quantity FROM view_on_professors GROUP BY item
-- google/zetasql zetasql/compliance/testdata/differential_privacy.test
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) SUM(int64_val, contribution_bounds_per_group => (2, 3)) FROM TestTableWithUid
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) AVG(int64_val, contribution_bounds_per_group => (2, 3)) FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) SUM(double_val) FROM TestTableWithUid
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) AVG(double_val) FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=100, delta=1e-220) SUM(double_val) FROM TestTableWithUid
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) SUM(int64_val, contribution_bounds_per_group => (2, 3)), COUNT(double_val, contribution_bounds_per_group => (0, 10)) FROM TestTableWithUid
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) AVG(int64_val, contribution_bounds_per_group => (2, 3)), COUNT(double_val, contribution_bounds_per_group => (0, 10)) FROM TestTableWithUid
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3, max_groups_contributed=3) x, COUNT(*) FROM TestTableWithUid CROSS JOIN UNNEST([1,2,3]) as x GROUP BY x ORDER BY x ASC
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) COUNT(*) FROM TestTableWithUid CROSS JOIN UNNEST([1,2,3]) as x
SELECT SUM(count_star) FROM ( SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3, max_groups_contributed=2) int64_val, COUNT(*) as count_star FROM TestTableWithUid GROUP BY int64_val)
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) VAR_POP(double_val), VAR_POP(int64_val) FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) VAR_POP(double_val, contribution_bounds_per_row => (2.0, 3.0)) FROM TestTableWithUid2 UNION ALL SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) VAR_POP(int64_val, contribution_bounds_per_row => (2.0, 3.0)) FROM TestTableWithUid2
SELECT VAR_POP(ClampedValue) FROM (SELECT CASE WHEN double_val < 2 THEN 2 WHEN double_val > 3 THEN 3 ELSE double_val END AS ClampedValue FROM TestTableWithUid2)
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) STDDEV_POP(double_val), STDDEV_POP(int64_val) FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) STDDEV_POP(double_val, contribution_bounds_per_row => (2, 3)) FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) ABS(PERCENTILE_CONT(double_val, 0.4) - 1.5) < 0.01, ABS(PERCENTILE_CONT(int64_val, 0.6) - 2) < 0.01 FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) ABS(PERCENTILE_CONT(double_val, 0.4 , contribution_bounds_per_row => (1, 3)) - 1.5) < 0.01 FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) ABS(APPROX_QUANTILES(double_val, 5, contribution_bounds_per_row => (1, 3))[OFFSET(2)] - 1.5) < 0.01 FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) COUNT(*, contribution_bounds_per_group => (0, 10)) FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) SUM(double_val, contribution_bounds_per_group => (0, 10), report_format => "PROTO") FROM TestTableWithUid2
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e20, delta=1e-3) SUM(int64_val) FROM TestTableWithUid2 WHERE id > 1000
-- google/differential-privacy examples/zetasql/codelab.md
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS( epsilon=1, delta=1e-5, max_groups_contributed=1, privacy_unit_column=VisitorId) TIME_TRUNC(PARSE_TIME("%I:%M%p", `Time entered`), HOUR) AS `Hour entered`, COUNT(*, contribution_bounds_per_group => (0, 1)) AS `Total Visitors (DP)` FROM day_data GROUP BY `Hour entered`
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS( epsilon = 1, delta = 1e-5, max_groups_contributed = 3, privacy_unit_column=VisitorId) Day, COUNT(*, contribution_bounds_per_group => (0, 1)) AS `Total Visitors (DP)` FROM week_data GROUP BY Day
SELECT `Day`, COUNT(*) AS `Total Visitors (DP)` FROM week_data GROUP BY `Day`
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS( epsilon=1, delta=1e-5, kappa=3, privacy_unit_column=VisitorId) `Day`, SUM(CAST (`Money spent (euros)` AS INT32), contribution_bounds_per_group => (10, 50)) AS `Total money spent (DP)` FROM week_data GROUP BY `Day`
SELECT `Day`, SUM(CAST (`Money spent (euros)` AS INT32)) AS `Total money spent (Raw)` FROM week_data GROUP BY `Day`
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS( epsilon=1, delta=1e-5, max_groups_contributed=1, privacy_unit_column=VisitorId) CAST(SAFE_MULTIPLY(CEIL(SAFE_DIVIDE(CAST(`Time spent (minutes)` AS DOUBLE), 10.0)), 10.0) AS INT32) AS `Time Spent`, COUNT(CAST(SAFE_MULTIPLY(CEIL(SAFE_DIVIDE(CAST(`Time spent (minutes)` AS DOUBLE), 10.0)), 10.0) AS INT32), contribution_bounds_per_group => (0, 3)) AS `Total visitors (DP)` FROM outliers_week_data GROUP BY `Time Spent`
-- google/differential-privacy examples/zetasql/README.md
SELECT WITH ANONYMIZATION OPTIONS(epsilon=1, delta=1e-10, kappa=1) ANON_AVG(CAST (`Time spent (minutes)` AS INT32) CLAMPED BETWEEN 10 AND 120) AS `DP average time spent (mins)`, ANON_SUM(CAST (`Money spent (euros)` AS INT32) CLAMPED BETWEEN 10 AND 50) AS `DP total money spent (euros)` FROM day_data
-- google/differential-privacy cc/postgres/README.md
SELECT fruit, COUNT(fruit) FROM FruitEaten GROUP BY fruit
SELECT color, COUNT(fruit) FROM FruitEaten f INNER JOIN Shirts s ON (f.uid = s.uid) GROUP BY color
SELECT result.fruit, result.number_eaten FROM ( SELECT per_person.fruit, ANON_SUM(per_person.fruit_count, LN(3)/2) as number_eaten, ANON_COUNT(uid, LN(3)/2) as number_eaters FROM( SELECT * , ROW_NUMBER() OVER ( PARTITION BY uid ORDER BY random() ) as row_num FROM ( SELECT fruit, uid, COUNT(fruit) as fruit_count FROM FruitEaten GROUP BY fruit, uid ) as per_person_raw ) as per_person WHERE per_person.row_num <= 5 GROUP BY per_person.fruit ) as result WHERE result.number_eaters > 50
SELECT fruit, ANON_COUNT(fruit) FROM FruitEaten GROUP BY fruit
SELECT ANON_SUM_WITH_BOUNDS(quantity, 0, 100) FROM professors
SELECT ANON_AVG_WITH_BOUNDS(quantity, 0, 100) FROM professors
SELECT ANON_VAR_WITH_BOUNDS(quantity, 0, 100) FROM professors
SELECT ANON_STDDEV_WITH_BOUNDS(quantity, 0, 100) FROM professors
SELECT ANON_NTILE(quantity, 0.5, 0, 100) FROM professors
-- BigQuery docs, bigquery/docs/extend-differential-privacy
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-5, privacy_unit_column=id) COUNT(*) AS results FROM professors
-- a BigQuery clean room, and dbt models, found by their text `SELECT WITH DIFFERENTIAL_PRIVACY`
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ( epsilon = 1.0, delta = 1e-5, max_groups_contributed = 3, privacy_unit_column = hashed_email ) campaign_name, channel, COUNT(*) AS approx_reach, AVG(CAST(converted AS FLOAT64)) AS approx_conversion_rate FROM clean_room_combined_view GROUP BY campaign_name, channel
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon=1e2, delta=1e-3, privacy_unit_column=id) department ,count(*) as employee_count ,avg(annual_gross_salary_gbp) as mean_gross_annual_income FROM fake_employee GROUP BY 1 ORDER BY 1
select with differential_privacy options (epsilon = 0.5, delta = 1e-6, max_groups_contributed = 3, privacy_unit_column = customer_id) format_date('%Y-%m', date_key) as year_month, category, count(*, contribution_bounds_per_group => (0, 3)) as dp_complaints from fct_complaint group by year_month, category
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS( epsilon = 1.0, delta = 1e-5, privacy_unit_column = user_id, max_groups_contributed = 5 ) p.city, COUNT(DISTINCT p.user_id) AS active_user_count, AVG(c.weekly_challenges) AS avg_challenges FROM profiles p JOIN consents cb ON p.user_id = cb.user_id LEFT JOIN challenges c ON p.user_id = c.user_id WHERE cb.category = 'b2b_brands' AND cb.status = 'granted' AND p.is_minor = FALSE AND c.weekly_challenges >= 3 GROUP BY p.city HAVING COUNT(DISTINCT p.user_id) >= 50
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS( epsilon = 1.0, delta = 1e-5, privacy_unit_column = user_id, max_groups_contributed = 5 ) p.city, CASE WHEN p.age BETWEEN 16 AND 20 THEN '16-20' WHEN p.age BETWEEN 21 AND 25 THEN '21-25' WHEN p.age BETWEEN 26 AND 30 THEN '26-30' ELSE '31+' END AS age_band, COUNT(DISTINCT p.user_id) AS new_recruit_count FROM profiles p JOIN consents cb ON p.user_id = cb.user_id WHERE cb.category = 'b2b_brands' AND cb.status = 'granted' AND p.is_minor = FALSE GROUP BY p.city, age_band
