"""Materialized views over tables that PyIceberg writes, compared after every commit with
what Python computes from the source's own rows."""

import sys
from collections import defaultdict

import pyarrow as pa
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import DecimalType, IntegerType, LongType, NestedField, StringType, TimestampType

import lake

FIELDS = [
    pa.field("id", pa.int64(), nullable=False), pa.field("dep", pa.timestamp("us")), pa.field("carrier", pa.string()),
    pa.field("seats", pa.int32()), pa.field("price", pa.decimal128(12, 2)),
]
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True), NestedField(2, "dep", TimestampType()), NestedField(3, "carrier", StringType()),
    NestedField(4, "seats", IntegerType()), NestedField(5, "price", DecimalType(12, 2)), identifier_field_ids=[1],
)
# How the source is partitioned matters to the views that find touched buckets in files.
BUCKETED = ("daily", "carriers", "monthly")
SPECS = {
    "plain": PartitionSpec(),
    "by_day": PartitionSpec(PartitionField(2, 1000, DayTransform(), "dep_day"), spec_id=0),
    "by_carrier": PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "carrier_part"), spec_id=0),
}


def flight(n, day=None, carrier=None):
    """Some rows have no time, no carrier or no price: groups of null are groups."""
    return {
        "id": n,
        "dep": lake.moment(n % 40 if day is None else day, n % 24, n % 60) if n % 11 else None,
        "carrier": carrier or ([None, "AA", "B6", "DL", "Ü"][n % 5]),
        "seats": n % 200 if n % 13 else None,
        "price": lake.cents(n * 997) if n % 7 else None,
    }


def total(values):
    """SQL's sum: nulls do not count, nothing but nulls gives null."""
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def grouped(rows, key):
    groups = defaultdict(list)
    for r in rows:
        groups[key(r)].append(r)
    return groups.items()


def day_of(r):
    return r["dep"].replace(hour=0, minute=0) if r["dep"] else None


def month_of(day):
    return day.replace(day=1) if day else None


def daily(rows):
    """date_trunc of a timestamp is a timestamp, count(DISTINCT …) leaves nulls out."""
    for (day, carrier), g in grouped((r for r in rows if r["seats"] is None or r["seats"] != 5), lambda r: (day_of(r), r["carrier"])):
        prices = [r["price"] for r in g if r["price"] is not None]
        yield {
            "day": day, "carrier": carrier, "flights": len(g), "seats": total(r["seats"] for r in g),
            "price": total(r["price"] for r in g), "top": max(prices, default=None), "kinds": len({r["seats"] for r in g if r["seats"] is not None}),
        }


def carriers(rows):
    for carrier, g in grouped(rows, lambda r: r["carrier"]):
        yield {"carrier": carrier, "flights": len(g), "first": min((r["dep"] for r in g if r["dep"]), default=None)}


def monthly(rows):
    for month, g in grouped(daily(rows), lambda r: month_of(r["day"])):
        yield {"month": month, "flights": sum(r["flights"] for r in g)}


def overall(rows):
    yield {"n": len(rows), "seats": total(r["seats"] for r in rows)}


def last(rows):
    """The ten greatest ids: a LIMIT makes every row depend on all others."""
    for r in sorted(rows, key=lambda r: -r["id"])[:10]:
        yield {"id": r["id"], "carrier": r["carrier"]}


QUERIES = {
    "daily": (daily, """
        SELECT date_trunc('day', dep) AS day, carrier, count(*) AS flights, sum(seats) AS seats,
               sum(price) AS price, max(price) AS top, count(DISTINCT seats) AS kinds
          FROM {table} WHERE seats IS DISTINCT FROM 5 GROUP BY ALL"""),
    "carriers": (carriers, "SELECT carrier, count(*) AS flights, min(dep) AS first FROM {table} GROUP BY carrier"),
    "monthly": (monthly, "SELECT date_trunc('month', day) AS month, sum(flights) AS flights FROM {table}_daily GROUP BY 1"),
    "overall": (overall, "SELECT count(*) AS n, sum(seats) AS seats FROM {table}"),
    "last": (last, "SELECT id, carrier FROM {table} ORDER BY id DESC LIMIT 10"),
}


class Lab:
    """A source, its model in memory, and the views over it."""

    def __init__(self, catalog, namespace, kind):
        self.catalog, self.namespace, self.kind = catalog, namespace, kind
        self.table = catalog.create_table((*namespace, kind), SCHEMA, partition_spec=SPECS[kind])
        self.views = {
            name: lake.View.create(catalog, namespace, f"{kind}_{name}", sql.format(table=kind)) for name, (_, sql) in QUERIES.items()
            if kind == "plain" or name in BUCKETED
        }
        self.model = []

    def arrow(self, rows):
        return pa.Table.from_pylist(rows, schema=pa.schema(FIELDS))

    def strategies(self):
        """Of all runs: most were started by the commits, before anybody asked."""
        return {
            (name, run["strategy"]) for name, view in self.views.items() for run in lake.must("GET", view.path + "/refreshes")["refreshes"]
        }

    def check(self, what):
        what = f"{self.kind} after {what}"
        source = lake.rows_of(self.catalog.load_table((*self.namespace, self.kind)))
        lake.same_rows(source, self.model, what)
        for name, view in self.views.items():
            run = view.refresh()
            lake.same_rows(view.rows(), list(QUERIES[name][0](source)), f"{view.name}, {what} ({run['strategy']}, {run['reason']})")
            view.status("fresh", True, "UP_TO_DATE")


def work(catalog, namespace, kind):
    lab = Lab(catalog, namespace, kind)
    lab.check("nothing")

    lab.model = [flight(n) for n in range(1, 400)]
    lab.table.append(lab.arrow(lab.model))
    lab.check("first append")

    more = [flight(n, day=3) for n in range(1000, 1010)]
    lab.table.append(lab.arrow(more))
    lab.model += more
    lab.check("append to one day")

    lab.table.delete(And(EqualTo("carrier", "B6"), LessThan("id", 100)))
    lab.model = [r for r in lab.model if not (r["carrier"] == "B6" and r["id"] < 100)]
    lab.check("delete")

    new = [flight(n, day=5) for n in range(2000, 2007)]
    lab.table.overwrite(lab.arrow(new), overwrite_filter=And(GreaterThanOrEqual("id", 150), LessThan("id", 160)))
    lab.model = [r for r in lab.model if not 150 <= r["id"] < 160] + new
    lab.check("overwrite")

    changed = [flight(n, day=39, carrier="ZZ") for n in (1, 2, 5000)]
    lab.table.upsert(lab.arrow(changed))
    lab.model = [r for r in lab.model if r["id"] not in (1, 2)] + changed
    lab.check("upsert")

    if kind == "by_carrier":  # the only one of identity, as PyIceberg wants it
        replaced = [flight(n, day=7) for n in range(6000, 6020) if n % 5 in (0, 3)]
        lab.table.dynamic_partition_overwrite(lab.arrow(replaced))
        lab.model = [r for r in lab.model if r["carrier"] not in (None, "DL")] + replaced
        lab.check("dynamic partition overwrite")

    lab.table.delete(EqualTo("carrier", "ZZ"))  # the whole of some groups
    lab.model = [r for r in lab.model if r["carrier"] != "ZZ"]
    lab.check("delete of whole groups")

    lab.table.delete("id > 0")
    lab.model = []
    lab.check("delete of everything")

    lab.model = [flight(n) for n in range(1, 20)]
    lab.table.append(lab.arrow(lab.model))
    lab.check("append after everything was deleted")
    return lab.strategies()


def main():
    catalog = lake.catalog()
    namespace = ("py_mv",)
    catalog.create_namespace(namespace)
    strategies = set()
    for kind in SPECS:
        strategies |= work(catalog, namespace, kind)
    # Right rows from full refreshes alone would not show that touched buckets are found.
    for expected in (("daily", "buckets"), ("carriers", "buckets"), ("monthly", "buckets"), ("overall", "full"), ("last", "full")):
        lake.holds(expected in strategies, f"{expected} never happened, only {sorted(strategies)}")


sys.exit(main())
