"""The 22 queries of TPC-H with the customer as the privacy unit: each as the specification has it, or what was changed.

Protected are customer, orders (by o_custkey) and lineitem (through its order); all else is public. Where `changed` says
something, `sql` is the query after that change. Queries 2, 11 and 16 read public tables alone; query 21 compares a
lineitem with those of other suppliers by another relation than equality, which is refused.

Source: TPC Benchmark H, standard specification, revision 3, section 2.4, with the parameters of the validation run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wpinq

PUBLIC = ("part", "supplier", "partsupp", "nation", "region")
BOUNDS = {
    "l_quantity": (0, 50), "l_extendedprice": (0, 105_000), "l_discount": (0, 0.1), "l_tax": (0, 0.08),
    "c_acctbal": (-1000, 10_000), "ps_supplycost": (0, 1000), "bought": (0, 350),
}  # fmt: skip
"""What the specification says of these columns (section 4.2.3)."""
REVENUE = "sum(l_extendedprice * (1 - l_discount))"
CODES = "('13', '31', '23', '29', '30', '18', '17')"


@dataclass(frozen=True)
class Query:
    """One query.

    Attributes:
        sql: Its text.
        changed: What was changed; empty where nothing was.
        groups: The output columns that are keys of groups, in the order of GROUP BY.
    """

    sql: str
    changed: str = ""
    groups: str = ""

    def ask(self, tables: dict[str, Any], *, explain: bool = False, **options: Any) -> wpinq.Answer:
        """Ask it with the bounds of the columns that it computes with."""
        bounds = {name: pair for name, pair in BOUNDS.items() if self._computes and re.search(rf"\b{name}\b", self.sql)}
        return wpinq.sql("EXPLAIN " * explain + self.sql, tables, bounds=bounds or None, **options)

    @property
    def _computes(self) -> bool:
        return "sum(l_" in self.sql or "sum(c_" in self.sql or "volume" in self.sql or "amount" in self.sql


def tables(
    folder: Path, ledger: Path, *, budget: int, most: int = 80, table: Callable[[str], Any] | None = None
) -> dict[str, Any]:
    """The eight tables of a folder of Parquet files, protected where they hold people.

    Args:
        table: The source of a protected table, where it is not a file of the folder.
    """

    def file(name: str) -> str:
        return str(folder / f"{name}.parquet")

    protected = table or file
    customer = wpinq.protect(
        protected("customer"), budget=budget, unit=wpinq.users("c_custkey", at_most=1), name="customer", ledger=ledger,
        delta="0.1",
    )  # fmt: skip
    people = wpinq.users("o_custkey", at_most=most)
    orders = wpinq.protect(protected("orders"), unit=people, name="orders", ledger=ledger)
    way = wpinq.users(through=("l_orderkey", orders, "o_orderkey"), at_most=4 * most)
    items = wpinq.protect(protected("lineitem"), unit=way, name="lineitem", ledger=ledger)
    return {"customer": customer, "orders": orders, "lineitem": items, **{name: file(name) for name in PUBLIC}}


QUERIES = {
    1: Query("""select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
        sum(l_extendedprice * (1 - l_discount)) as sum_disc_price,
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty,
        avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
        from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
        groups="l_returnflag l_linestatus"),
    3: Query(f"""select l_orderkey, {REVENUE} as revenue, o_orderdate, o_shippriority from customer, orders, lineitem
        where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
        and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10""",
        groups="l_orderkey o_orderdate o_shippriority"),
    4: Query("""select o_orderpriority, count(*) as order_count from orders where o_orderdate >= date '1993-07-01'
        and o_orderdate < date '1993-07-01' + interval '3' month
        and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority order by o_orderpriority""",
        groups="o_orderpriority"),
    5: Query(f"""select n_name, {REVENUE} as revenue from customer, orders, lineitem, supplier, nation, region
        where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
        and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA'
        and o_orderdate >= date '1994-01-01' and o_orderdate < date '1994-01-01' + interval '1' year
        group by n_name order by revenue desc""",
        groups="n_name"),
    6: Query("""select sum(l_extendedprice * l_discount) as revenue from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year
        and l_discount between .06 - 0.01 and .06 + 0.01 and l_quantity < 24"""),
    7: Query("""select supp_nation, cust_nation, l_year, sum(volume) as revenue from (
        select n1.n_name as supp_nation, n2.n_name as cust_nation, extract(year from l_shipdate) as l_year,
        l_extendedprice * (1 - l_discount) as volume from supplier, lineitem, orders, customer, nation n1, nation n2
        where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
        and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
        and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
        and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping
        group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year""",
        groups="supp_nation cust_nation l_year"),
    8: Query("""select o_year, sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share from (
        select extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume,
        n2.n_name as nation from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
        where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey
        and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and r_name = 'AMERICA'
        and s_nationkey = n2.n_nationkey and o_orderdate between date '1995-01-01' and date '1996-12-31'
        and p_type = 'ECONOMY ANODIZED STEEL') as all_nations group by o_year order by o_year""",
        groups="o_year"),
    9: Query("""select nation, o_year, sum(amount) as sum_profit from (
        select n_name as nation, extract(year from o_orderdate) as o_year,
        l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
        from part, supplier, lineitem, partsupp, orders, nation where s_suppkey = l_suppkey
        and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey and o_orderkey = l_orderkey
        and s_nationkey = n_nationkey and p_name like '%green%') as profit
        group by nation, o_year order by nation, o_year desc""",
        groups="nation o_year"),
    10: Query(f"""select c_custkey, c_name, {REVENUE} as revenue, c_acctbal, n_name, c_address, c_phone, c_comment
        from customer, orders, lineitem, nation where c_custkey = o_custkey and l_orderkey = o_orderkey
        and o_orderdate >= date '1993-10-01' and o_orderdate < date '1993-10-01' + interval '3' month
        and l_returnflag = 'R' and c_nationkey = n_nationkey
        group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment order by revenue desc limit 20""",
        groups="c_custkey c_name c_acctbal c_phone n_name c_address c_comment"),
    12: Query("""select l_shipmode,
        sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end) as high_line_count,
        sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end) as low_line_count
        from orders, lineitem where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP')
        and l_commitdate < l_receiptdate and l_shipdate < l_commitdate and l_receiptdate >= date '1994-01-01'
        and l_receiptdate < date '1994-01-01' + interval '1' year group by l_shipmode order by l_shipmode""",
        groups="l_shipmode"),
    13: Query("""select c_count, count(*) as custdist from (select c_custkey, count(o_orderkey) from customer
        left outer join orders on c_custkey = o_custkey and o_comment not like '%special%requests%'
        group by c_custkey) as c_orders (c_custkey, c_count)
        group by c_count order by custdist desc, c_count desc""",
        groups="c_count"),
    14: Query(f"""select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
        / {REVENUE} as promo_revenue from lineitem, part where l_partkey = p_partkey
        and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-09-01' + interval '1' month"""),
    15: Query(f"""select l_suppkey, {REVENUE} as total_revenue from lineitem where l_shipdate >= date '1996-01-01'
        and l_shipdate < date '1996-01-01' + interval '3' month group by l_suppkey
        order by total_revenue desc limit 1""",
        "the view alone, ORDER BY total_revenue LIMIT 1 for = (SELECT MAX(...)); the supplier's address is public",
        groups="l_suppkey"),
    17: Query("""select sum(l_extendedprice) / 7.0 as avg_yearly from lineitem, part where p_partkey = l_partkey
        and p_brand = 'Brand#23' and p_container = 'MED BOX' and l_quantity < 5.1""",
        "the inner average over protected lineitems is a number: 0.2 * 25.5, by the specification, or asked first"),
    18: Query("""select count(*) as large_orders, sum(bought) as quantity from (
        select l_orderkey, sum(l_quantity) as bought from lineitem group by l_orderkey
        having sum(l_quantity) > 300) as large""",
        "the inner query, counted: its rows are of single customers, whom no answer names"),
    19: Query(f"""select {REVENUE} as revenue from lineitem, part where
        (p_partkey = l_partkey and p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
        and l_quantity >= 1 and l_quantity <= 1 + 10 and p_size between 1 and 5 and l_shipmode in ('AIR', 'AIR REG')
        and l_shipinstruct = 'DELIVER IN PERSON') or (p_partkey = l_partkey and p_brand = 'Brand#23'
        and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK') and l_quantity >= 10 and l_quantity <= 10 + 10
        and p_size between 1 and 10 and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
        or (p_partkey = l_partkey and p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
        and l_quantity >= 20 and l_quantity <= 20 + 10 and p_size between 1 and 15 and l_shipmode in ('AIR', 'AIR REG')
        and l_shipinstruct = 'DELIVER IN PERSON')"""),
    20: Query("""select l_suppkey, l_partkey, sum(l_quantity) as sold from lineitem, part, supplier, nation
        where l_partkey = p_partkey and l_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'CANADA'
        and p_name like 'forest%' and l_shipdate >= date '1994-01-01'
        and l_shipdate < date '1994-01-01' + interval '1' year group by l_suppkey, l_partkey""",
        "the protected part of the question; what is compared with it, partsupp, is public",
        groups="l_suppkey l_partkey"),
    22: Query(f"""select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal from (
        select substring(c_phone from 1 for 2) as cntrycode, c_acctbal from customer
        where substring(c_phone from 1 for 2) in {CODES} and c_acctbal > 4990
        and not exists (select * from orders where o_custkey = c_custkey)) as custsale
        group by cntrycode order by cntrycode""",
        "the inner average of protected balances is a number, asked first",
        groups="cntrycode"),
}  # fmt: skip
