-- opendp/smartnoise-sdk tests/sdk/query/queries/rewrite/rewrites.sql
SELECT SUM(Crashes) AS crashes FROM Telemetry.Crashes WHERE Region = 'LATAM'
SELECT AVG(Temperature) AS temperature FROM Telemetry.Crashes GROUP BY Refurbished
SELECT Building, SUM(Crashes) AS total_crash, AVG(Crashes) AS avg_crashes, AVG(Temperature) FROM Telemetry.Crashes WHERE Refurbished = TRUE GROUP BY Building
SELECT COUNT(DeviceID) AS Devices FROM Telemetry.Crashes
SELECT SUM(Temperature), SUM(Temperature), SUM(Crashes), COUNT(Building) FROM Telemetry.Crashes GROUP BY Region
SELECT AVG(Temperature) AS avg_temperature, Region, Building, Refurbished FROM Telemetry.Crashes WHERE Temperature > 53.1 GROUP BY Refurbished, Region, Building
SELECT COUNT(DeviceID) AS n, Region, Building, Refurbished FROM Telemetry.Crashes WHERE Temperature > 53.1 GROUP BY Region, Building, Refurbished
SELECT COUNT(DeviceID) AS Devices, Region, Refurbished, Building, AVG(Temperature) AS Temperature FROM Telemetry.Crashes WHERE Temperature > 53.1 GROUP BY Region, Refurbished, Building ORDER BY Region, Refurbished, Building DESC
SELECT SUM(Crashes) AS Crashes, COUNT(DeviceID) AS Devices FROM Telemetry.Crashes
SELECT SUM(Crashes) AS Crashes FROM Telemetry.Crashes
SELECT COUNT(Crashes) AS Crashes FROM Telemetry.Crashes
SELECT Region, SUM(Crashes) AS crashes FROM Telemetry.Crashes WHERE Region IN ('LATAM', 'EMEA') GROUP BY Region ORDER BY Region DESC
SELECT COUNT(DISTINCT DeviceID) AS n, Region, Building, Refurbished FROM Telemetry.Crashes WHERE Temperature > 53.1 GROUP BY Region, Building, Refurbished
SELECT COUNT(DISTINCT DeviceID) AS did FROM Telemetry.Crashes GROUP BY Refurbished
SELECT COUNT(DISTINCT DeviceID) AS did FROM Telemetry.Crashes
SELECT Region, Refurbished, AVG(Temperature) FROM Telemetry.Crashes GROUP BY Region, Refurbished ORDER BY Refurbished, Region
SELECT COUNT(DeviceID) AS Devices, Region, Refurbished, AVG(Temperature) AS Temperature FROM Telemetry.Crashes GROUP BY Region, Refurbished ORDER BY Region, Refurbished DESC
SELECT OEM, TrialGroup, COUNT(DeviceID) AS N, SUM(Crashes) FROM ( SELECT Crashes, T.* FROM Telemetry.Crashes JOIN ( SELECT DeviceID, OEM, TrialGroup FROM (Telemetry.Census JOIN Telemetry.Rollouts USING(DeviceID)) AS Q ) AS T USING(DeviceID) ) AS Z GROUP BY OEM, TrialGroup ORDER BY OEM, TrialGroup
SELECT Heat, COUNT(DeviceID) FROM (SELECT DeviceID, CASE WHEN Temperature < 42 THEN 'Cold' WHEN Temperature > 51 THEN 'Hot' ELSE 'Medium' END AS Heat FROM Telemetry.Crashes) AS TC GROUP BY Heat ORDER BY Heat
-- opendp/smartnoise-sdk tests/sdk/query/queries/run/run.sql
SELECT POWER(COUNT ( DeviceID ) / 10000, 2) AS n, Region FROM Telemetry.Crashes GROUP BY Region
SELECT SQRT(AVG(Crashes * Crashes) - AVG(Crashes) * AVG(Crashes) )  FROM Telemetry.Crashes
-- opendp/smartnoise-sdk sql/tests/query/queries/compare/compare.sql
SELECT  TrialGroup, COUNT(DeviceID) AS N, AVG(Temperature) FROM ( SELECT TC.*, T.TrialGroup, T.OEM FROM Telemetry.Crashes AS TC JOIN ( SELECT DeviceID, OEM, TrialGroup FROM (Telemetry.Census JOIN Telemetry.Rollouts USING(DeviceID)) AS Q ) AS T USING(DeviceID) ) AS Z GROUP BY  TrialGroup ORDER BY  TrialGroup
SELECT OEM, AVG(Temperature) FROM Telemetry.Census JOIN Telemetry.Crashes USING(DeviceID) GROUP BY OEM ORDER BY OEM
SELECT SUM(Crashes), TrialGroup FROM Telemetry.Census JOIN Telemetry.Crashes USING(DeviceID) JOIN Telemetry.Rollouts USING(DeviceID) GROUP BY TrialGroup ORDER BY TrialGroup
-- opendp/smartnoise-sdk tests/query/queries/parse/subqueries.sql
SELECT Region, SUM(sum_Crashes) AS crashes FROM (SELECT COUNT(DeviceID) AS keycount, Region AS Region, SUM(sum_Crashes) AS sum_Crashes FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY DeviceID ORDER BY random()) AS row_num FROM (SELECT DeviceID AS DeviceID, Region AS Region, SUM(Crashes) AS sum_Crashes FROM (SELECT DeviceID AS DeviceID, Region AS Region, CASE WHEN Crashes < 0 THEN 0 WHEN Crashes > 10 THEN 10 ELSE Crashes END AS Crashes FROM Telemetry.Crashes  WHERE Region IN ('LATAM', 'EMEA')) AS clamped GROUP BY DeviceID, Region) AS per_key_clamped) AS per_key_random WHERE per_key_random.row_num <= 5 GROUP BY Region) AS exact_aggregates GROUP BY Region ORDER BY Region DESC
-- opendp/smartnoise-sdk sql/tests/query/queries/validate_pums/validate_pums.sql
SELECT SUM(age) FROM PUMS.PUMS
SELECT COUNT(*), VAR(age) AS var_age FROM PUMS.PUMS
SELECT married, educ, income, AVG(age) FROM PUMS.PUMS GROUP BY married, educ, income
SELECT p.married, AVG(age) AS aa FROM PUMS.PUMS AS p GROUP BY married
SELECT TOP 5 educ, AVG(income) FROM PUMS.PUMS GROUP BY educ
SELECT COUNT(married), AVG(age) FROM PUMS.PUMS
SELECT 3 AS three, p.married, educ, AVG(income) FROM PUMS.PUMS AS p GROUP BY educ, married
SELECT educ FROM PUMS.PUMS GROUP BY educ
SELECT SUM(age) AS age FROM PUMS.PUMS
SELECT (SUM(age)) AS age FROM PUMS.PUMS
SELECT SUM(age) * 1 AS age FROM PUMS.PUMS
SELECT SUM(age), COUNT(*) FROM PUMS.PUMS
SELECT PI(), RAND(), POWER(AVG(age), 2) FROM PUMS.PUMS
SELECT SUM(age) FROM PUMS.PUMS GROUP BY married, CASE WHEN age > 90 THEN 1 ELSE 0 END
-- opendp/smartnoise-sdk sql/tests/query/queries/validate_pums/validate_pums_fail.sql, which wpinq can answer
SELECT SUM(Age + Income) FROM PUMS.PUMS
SELECT COUNT(*) FROM (SELECT * FROM PUMS.PUMS)
SELECT SUM(CASE WHEN age > 90 THEN 1 ELSE 0 END) AS age FROM PUMS.PUMS
SELECT SUM(age + 1) * 1 AS age FROM PUMS.PUMS
-- opendp/smartnoise-sdk sql/tests/query/test_having.py
SELECT age, sex, COUNT(*) AS n, SUM(income) AS income FROM PUMS.PUMS GROUP BY age, sex HAVING income > 100000
SELECT age, sex, COUNT(*) AS n, SUM(income) AS income FROM PUMS.PUMS GROUP BY age, sex HAVING sex = '1'
SELECT age, sex, COUNT(*) AS n, SUM(income) AS income FROM PUMS.PUMS GROUP BY age, sex HAVING income > 100000 OR sex = '1'
SELECT age, COUNT(*) FROM PUMS.PUMS GROUP BY age HAVING age < 30 OR age > 60
SELECT age * 1000 as age, COUNT(*) FROM PUMS.PUMS GROUP BY age HAVING age < 30000 OR age > 60000
SELECT age as age, COUNT(*) FROM PUMS.PUMS GROUP BY age HAVING age * 1000 < 30000 OR age * 2 > 120
SELECT age, COUNT(*) AS n FROM PUMS.PUMS GROUP BY age HAVING (age < 30 OR age > 60) AND n > 10
SELECT age, COUNT(*) * 1000 AS n FROM PUMS.PUMS GROUP BY age HAVING (age < 30 OR age > 60) AND n > 10000
SELECT age, COUNT(*) AS n FROM PUMS.PUMS GROUP BY age HAVING (age < 30 OR age > 60) AND n * 100 / 2 > 500
SELECT age, married, COUNT(*) AS n, SUM(income) AS income FROM PUMS.PUMS GROUP BY age, married HAVING married = TRUE
SELECT age, married, COUNT(*) AS n, SUM(income) AS income FROM PUMS.PUMS GROUP BY age, married HAVING n > 10 OR married
SELECT age, married, COUNT(*) AS n, SUM(income) AS income FROM PUMS.PUMS GROUP BY age, married HAVING NOT married
-- opendp/smartnoise-sdk sql/tests/query/test_having_expressions.py
SELECT educ, COUNT(*) FROM pums GROUP BY educ HAVING COUNT(*) > 50
SELECT educ, COUNT(DISTINCT pid) AS n FROM pums GROUP BY educ HAVING COUNT(DISTINCT pid) > 50
SELECT educ, COUNT(DISTINCT pid) AS n FROM pums GROUP BY educ HAVING n > 50
SELECT educ, COUNT(DISTINCT pid) AS n FROM pums GROUP BY educ HAVING COUNT(*) > 50
SELECT educ, COUNT(*) FROM pums GROUP BY educ HAVING (COUNT(*) / CAST(educ AS INTEGER)) > 5
SELECT sex as educ, educ as sex, COUNT(*) AS n FROM pums GROUP BY sex, educ HAVING sex > '2'
SELECT educ as sex, sex as educ, COUNT(*) AS n FROM pums GROUP BY sex, educ HAVING educ > 2
-- opendp/smartnoise-sdk sql/tests/query/test_order_by_expressions.py
SELECT sex AS gender, educ FROM pums GROUP BY sex, educ ORDER by sex DESC
SELECT sex AS gender, educ AS sex FROM pums GROUP BY sex, educ ORDER by gender DESC
SELECT sex AS gender, educ AS sex FROM pums GROUP BY sex, educ ORDER by (CAST(gender AS INTEGER) + 5) DESC
SELECT sex AS gender, educ AS sex FROM pums GROUP BY sex, educ ORDER by (CAST(gender AS INTEGER) * -1) DESC, educ ASC
SELECT educ FROM pums GROUP BY educ ORDER by CAST(educ AS INTEGER) DESC
SELECT educ FROM pums GROUP BY educ ORDER by CAST(educ AS VARCHAR) DESC
SELECT educ, COUNT(DISTINCT pid) AS n FROM pums GROUP BY educ ORDER by COUNT(pid) DESC
-- opendp/smartnoise-sdk sql/tests/query/test_query.py
SELECT COUNT(*) AS c FROM PUMS.PUMS
SELECT COUNT(*) AS c, married AS m FROM PUMS.PUMS GROUP BY married ORDER BY c
SELECT COUNT(*) * 5 AS c, married AS m FROM PUMS.PUMS GROUP BY married ORDER BY c DESC
SELECT COUNT(*) as c FROM PUMS.PUMS WHERE age > 100
SELECT SUM(age) as c FROM PUMS.PUMS WHERE age > 100
SELECT POWER(SUM(age), 2) as age_total FROM PUMS.PUMS
-- opendp/smartnoise-sdk sql/tests/query/test_thresholds.py and test_grouping_clamp.py
SELECT COUNT(*) AS c FROM PUMS.PUMS WHERE age > 70 GROUP BY educ
SELECT COUNT(*) AS c FROM PUMS.PUMS WHERE age > 70 AND educ < 2
SELECT COUNT(*) AS c FROM PUMS.PUMS WHERE age > 90 AND educ = '8'
SELECT income, COUNT(pid) AS n FROM PUMS.PUMS GROUP BY income
-- opendp/smartnoise-sdk sql/tests/query/queries/parse/expressions.sql
SELECT STDEV(age) FROM pums
SELECT LN(COUNT(*)) FROM pums
SELECT CEIL(COUNT(*)) FROM pums
SELECT ATANH(COUNT(*)) FROM pums
SELECT LOG2(COUNT(*)) FROM pums
-- opendp/smartnoise-sdk tests/query/queries/parse/order.sql
SELECT COUNT(*) AS N, SUM(Salary) AS S FROM ZIZ ORDER BY 2 * S / ((N + 300.11) / 2) DESC
SELECT COUNT(DISTINCT ID) AS N FROM (SELECT ID, SUM(Salary) AS S FROM ZIZ GROUP BY ID ORDER BY S DESC) ORDER BY N ASC
