"""The schema of a source changes below its materialized views."""

import sys

import pyarrow as pa
from pyiceberg.types import DateType, IntegerType, LongType, StringType

import lake

START = pa.schema([("day", pa.date32()), ("n", pa.int32()), ("name", pa.string())])


def main():
    catalog = lake.catalog()
    namespace = ("py_evolution",)
    catalog.create_namespace(namespace)
    table = catalog.create_table((*namespace, "t"), START)
    sums = lake.View.create(catalog, namespace, "sums", "SELECT day, sum(n) AS n, count(*) AS c FROM t GROUP BY day")
    every = lake.View.create(catalog, namespace, "every", "SELECT * FROM t")

    def rows_and_check(what, name="n"):
        source = lake.rows_of(catalog.load_table((*namespace, "t")))
        want = {}
        for r in source:
            n, c = want.get(r["day"], (None, 0))
            want[r["day"]] = (n if r[name] is None else (n or 0) + r[name], c + 1)
        sums.refresh()
        lake.same_rows(sums.rows(), [{"day": d, "n": n, "c": c} for d, (n, c) in want.items()], f"sums after {what}")
        sums.status("fresh", True, "UP_TO_DATE")
        return source

    rows = [{"day": lake.day(i % 4), "n": i, "name": f"r{i}"} for i in range(20)]
    table.append(pa.Table.from_pylist(rows, schema=START))
    source = rows_and_check("append")
    every.refresh()
    lake.same_rows(every.rows(), source, "every after append")

    # A column more: SELECT * keeps the columns that the view was declared with.
    with table.update_schema() as update:
        update.add_column("extra", StringType())
    wider = START.append(pa.field("extra", pa.string()))
    table.append(pa.Table.from_pylist([{"day": lake.day(1), "n": 100, "name": "x", "extra": "e"}], schema=wider))
    source = rows_and_check("add column")
    status, run = lake.call("POST", every.path + "/refresh?wait=true&timeout=60s", {})
    if status == 200 and run["status"] == "succeeded":
        lake.same_rows(every.rows(), [{k: r[k] for k in ("day", "n", "name")} for r in source], "every after add column")
    else:
        f = every.freshness()
        lake.holds(not f["up-to-date"] and f.get("last-error"), f"a view that cannot be refreshed is {f}")

    # Promotion: old files hold 32 bits, new ones 64.
    with table.update_schema() as update:
        update.update_column("n", field_type=LongType())
    long = pa.schema([("day", pa.date32()), ("n", pa.int64()), ("name", pa.string()), ("extra", pa.string())])
    table.append(pa.Table.from_pylist([{"day": lake.day(2), "n": 2**40, "name": None, "extra": None}], schema=long))
    rows_and_check("promotion of int to long")

    # A renamed column: the query names one that is gone. Nothing wrong may be shown.
    before = sums.rows()
    with table.update_schema() as update:
        update.rename_column("n", "amount")
    status, run = lake.call("POST", sums.path + "/refresh?wait=true&timeout=60s", {})
    f = sums.freshness()
    lake.holds(status != 200 or run["status"] == "failed", f"a query of a column that is gone was refreshed: {run}")
    lake.holds(not f["up-to-date"], f"a query of a column that is gone is up to date: {f}")
    lake.holds("n" in (f.get("last-error") or ""), f"the error does not name the column: {f}")
    lake.same_rows(sums.rows(), before, "rows after a failed refresh")

    body = {"namespace": list(namespace), "name": "sums", "or-replace": True, "sql": "SELECT day, sum(amount) AS n, count(*) AS c FROM t GROUP BY day"}
    lake.must("POST", "/catalogd/v1/main/materialized-views", body)
    rows_and_check("rename of a column and a new query", "amount")

    # Another column under the old name is another column.
    with table.update_schema() as update:
        update.add_column("n", IntegerType())
    newest = pa.schema([("day", pa.date32()), ("amount", pa.int64()), ("name", pa.string()), ("extra", pa.string()), ("n", pa.int32())])
    table.append(pa.Table.from_pylist([{"day": lake.day(3), "amount": 5, "name": "y", "extra": None, "n": 7}], schema=newest))
    rows_and_check("reuse of a name", "amount")
    body["sql"] = "SELECT day, sum(n) AS n, count(*) AS c FROM t GROUP BY day"
    lake.must("POST", "/catalogd/v1/main/materialized-views", body)
    rows_and_check("a query of the reused name")

    # A new partitioning applies to new files only.
    with table.update_spec() as update:
        update.add_identity("day")
    table = catalog.load_table((*namespace, "t"))
    lake.equal(table.schema().find_field("day").field_type, DateType(), "type of day")
    table.append(pa.Table.from_pylist([{"day": lake.day(i), "amount": 1, "name": "p", "extra": None, "n": i} for i in range(6)], schema=newest))
    rows_and_check("partition evolution")


sys.exit(main())
