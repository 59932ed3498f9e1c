"""Ordinary table work, on a partitioned and an unpartitioned table."""

import sys

import pyarrow as pa
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import DateType, DecimalType, DoubleType, IntegerType, LongType, NestedField, StringType

import lake

ARROW = pa.schema([
    pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("name", pa.string()), ("amount", pa.decimal128(9, 2)), ("small", pa.int32()),
])
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True), NestedField(2, "day", DateType()), NestedField(3, "name", StringType()),
    NestedField(4, "amount", DecimalType(9, 2)), NestedField(5, "small", IntegerType()), identifier_field_ids=[1],
)
SPECS = {
    "plain": PartitionSpec(),
    "partitioned": PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "day_part"), PartitionField(1, 1001, BucketTransform(4), "id_bucket"), spec_id=0,
    ),
}


def row(n, name="first"):
    return {"id": n, "day": lake.day(n % 5) if n % 7 else None, "name": name, "amount": lake.cents(n * 101), "small": n % 3}


def arrow(rows):
    return pa.Table.from_pylist(rows, schema=ARROW)


def work(catalog, namespace, kind):
    table = catalog.create_table((*namespace, kind), SCHEMA, partition_spec=SPECS[kind], properties={"owner": "me"})
    lake.equal(table.format_version, 2, "format version")
    model = [row(n) for n in range(40)]

    def check(what):
        fresh = catalog.load_table((*namespace, kind))
        lake.same_rows(lake.rows_of(fresh), model, f"{kind} after {what}")
        lake.equal(table.metadata, fresh.metadata, f"metadata after {what}: in hand and loaded")

    table.append(arrow(model))
    check("append")
    first = table.current_snapshot().snapshot_id
    old = list(model)

    table.delete(EqualTo("small", 1))
    model = [r for r in model if r["small"] != 1]
    check("delete")

    new = [row(n, "overwritten") for n in range(100, 106)]
    table.overwrite(arrow(new), overwrite_filter=And(GreaterThanOrEqual("id", 10), LessThan("id", 20)))
    model = [r for r in model if not 10 <= r["id"] < 20] + new
    check("overwrite")

    upserted = [row(n, "upserted") for n in (0, 2, 500, 501)]
    result = table.upsert(arrow(upserted))
    lake.equal((result.rows_updated, result.rows_inserted), (2, 2), "upsert")
    model = [r for r in model if r["id"] not in (0, 2)] + upserted
    check("upsert")

    lake.same_rows(lake.rows_of(table, snapshot_id=first), old, f"{kind} at its first snapshot")
    lake.same_rows(lake.rows_of(table, row_filter=EqualTo("name", "upserted")), upserted, f"{kind} filtered")

    with table.transaction() as tx:
        tx.append(arrow([row(600, "together")]))
        tx.set_properties(owner="you", empty="")
        tx.remove_properties("empty")
    model.append(row(600, "together"))
    lake.equal(table.properties.get("owner"), "you", "property")
    lake.holds("empty" not in table.properties, "a property that was removed in the same commit is there")
    check("transaction")

    with table.update_schema() as update:
        update.add_column("extra", DoubleType(), doc="new")
        update.rename_column("name", "label")
        update.update_column("small", field_type=LongType())
    model = [{"label" if k == "name" else k: v for k, v in r.items()} | {"extra": None} for r in model]
    check("schema evolution")
    more = pa.Table.from_pylist(
        [{"id": 700, "day": None, "label": "evolved", "amount": None, "small": 2**40, "extra": 0.5}],
        schema=pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32()), ("label", pa.string()), ("amount", pa.decimal128(9, 2)), ("small", pa.int64()), ("extra", pa.float64())]),
    )
    table.append(more)
    model += more.to_pylist()
    check("append after schema evolution")

    table.manage_snapshots().create_tag(first, "first").create_branch(first, "work").commit()
    for ref in ("first", "work"):
        lake.same_rows(table.scan().use_ref(ref).to_arrow().to_pylist(), old, f"{kind} at {ref}")
    table.manage_snapshots().remove_tag("first").remove_branch("work").commit()
    lake.equal(sorted(table.metadata.refs), ["main"], "refs")
    check("tags and branches")

    table.overwrite(more)
    model = more.to_pylist()
    check("overwrite of everything")


def main():
    catalog = lake.catalog()
    namespace = ("py_tables",)
    catalog.create_namespace(namespace)
    for kind in SPECS:
        work(catalog, namespace, kind)


sys.exit(main())
