"""Namespaces, names, views, and the exceptions that PyIceberg documents."""

import sys

import pyarrow as pa
from pyiceberg.exceptions import (
    CommitFailedException,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetPropertiesUpdate
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

import lake

ARROW = pa.schema([("id", pa.int64()), ("name", pa.string())])


def namespaces(catalog):
    top, nested = ("py_catalog",), ("py_catalog", "a.b", "c/d e")
    catalog.create_namespace(top, {"owner": "me", "empty": ""})
    lake.raises(NamespaceAlreadyExistsError, lambda: catalog.create_namespace(top), "py_catalog")
    catalog.create_namespace_if_not_exists(top)
    catalog.create_namespace(nested[:2])
    catalog.create_namespace(nested)
    lake.holds(top in catalog.list_namespaces(), "the namespace is not listed")
    lake.equal(catalog.list_namespaces(top), [nested[:2]], "children")
    lake.equal(catalog.list_namespaces(nested[:2]), [nested], "grandchildren")
    lake.holds(catalog.namespace_exists(nested), "a nested namespace does not exist")
    summary = catalog.update_namespace_properties(top, removals={"owner", "nothing"}, updates={"k": "v"})
    lake.equal((summary.removed, summary.updated, summary.missing), (["owner"], ["k"], ["nothing"]), "property changes")
    lake.equal(catalog.load_namespace_properties(top), {"k": "v", "empty": ""}, "properties")
    lake.raises(NamespaceNotEmptyError, lambda: catalog.drop_namespace(top), "py_catalog")
    lake.raises(NoSuchNamespaceError, lambda: catalog.load_namespace_properties("py_nowhere"), "py_nowhere")
    lake.raises(NoSuchNamespaceError, lambda: catalog.create_table("py_nowhere.t", ARROW), "py_nowhere")
    lake.raises(NoSuchNamespaceError, lambda: catalog.list_tables("py_nowhere"), "py_nowhere")
    lake.raises(NoSuchNamespaceError, lambda: catalog.drop_namespace("py_nowhere"), "py_nowhere")
    return top, nested


def tables(catalog, top, nested):
    t = catalog.create_table((*nested, "t"), ARROW)
    t.append(pa.Table.from_pylist([{"id": 1, "name": "Grüße"}], schema=ARROW))
    lake.raises(TableAlreadyExistsError, lambda: catalog.create_table((*nested, "t"), ARROW), "t")
    lake.equal(catalog.create_table_if_not_exists((*nested, "t"), ARROW).metadata.table_uuid, t.metadata.table_uuid, "table")
    lake.equal(catalog.list_tables(nested), [(*nested, "t")], "tables")
    lake.holds(catalog.table_exists((*nested, "t")), "the table does not exist")
    lake.holds(not catalog.table_exists((*top, "none")), "a missing table exists")
    lake.raises(NoSuchTableError, lambda: catalog.load_table((*top, "none")), "none")
    lake.raises(NoSuchTableError, lambda: catalog.drop_table((*top, "none")), "none")
    lake.raises(NoSuchTableError, lambda: catalog.rename_table((*top, "none"), (*top, "x")), "none")

    renamed = catalog.rename_table((*nested, "t"), (*top, "u"))
    lake.equal(renamed.metadata.table_uuid, t.metadata.table_uuid, "renamed table")
    lake.equal(lake.rows_of(catalog.load_table((*top, "u"))), [{"id": 1, "name": "Grüße"}], "rows of the renamed table")
    catalog.create_table((*top, "taken"), ARROW)
    lake.raises(TableAlreadyExistsError, lambda: catalog.rename_table((*top, "u"), (*top, "taken")), "already exists")
    lake.equal(sorted(catalog.list_tables(top)), [(*top, "taken"), (*top, "u")], "tables after a refused rename")

    with catalog.create_table_transaction((*top, "staged"), ARROW) as tx:
        lake.holds(not catalog.table_exists((*top, "staged")), "a staged table exists already")
        tx.append(pa.Table.from_pylist([{"id": 7, "name": "x"}], schema=ARROW))
    lake.equal(lake.rows_of(catalog.load_table((*top, "staged"))), [{"id": 7, "name": "x"}], "rows of a staged table")

    location = catalog.load_table((*top, "u")).metadata_location
    catalog.drop_table((*top, "u"))
    lake.raises(NoSuchTableError, lambda: catalog.load_table((*top, "u")), "u")
    back = catalog.register_table((*top, "back"), location)
    lake.equal(lake.rows_of(back), [{"id": 1, "name": "Grüße"}], "rows of the registered table")


def commits(catalog, top):
    """A commit whose requirement is stale fails and changes nothing."""
    table = catalog.load_table((*top, "back"))
    before = catalog.load_table((*top, "back")).metadata
    update = (SetPropertiesUpdate(updates={"a": "b"}),)
    stale = (AssertTableUUID(uuid=table.metadata.table_uuid), AssertRefSnapshotId(ref="main", snapshot_id=1))
    lake.raises(CommitFailedException, lambda: catalog.commit_table(table, stale, update), "branch main has changed")
    other = (AssertTableUUID(uuid="00000000-0000-0000-0000-000000000000"),)
    lake.raises(CommitFailedException, lambda: catalog.commit_table(table, other, update), "UUID does not match")
    lake.equal(catalog.load_table((*top, "back")).metadata, before, "metadata after refused commits")

    # Two writers that read the same snapshot: both appends are in the end.
    one, two = catalog.load_table((*top, "back")), catalog.load_table((*top, "back"))
    one.append(pa.Table.from_pylist([{"id": 2, "name": "one"}], schema=ARROW))
    two.append(pa.Table.from_pylist([{"id": 3, "name": "two"}], schema=ARROW))
    lake.equal(sorted(r["id"] for r in lake.rows_of(catalog.load_table((*top, "back")))), [1, 2, 3], "two writers")


def views(catalog, top):
    view = lake.View.create(catalog, top, "mv", "SELECT name, count(*) AS n FROM back GROUP BY name")
    view.refresh()
    lake.equal(catalog.list_views(top), [(*top, "mv")], "views")
    lake.holds(catalog.view_exists((*top, "mv")), "the view does not exist")
    lake.holds((*top, "mv__storage") not in catalog.list_tables(top), "the storage table is listed")
    lake.raises(NoSuchTableError, lambda: catalog.load_table((*top, "mv")), "mv")
    lake.raises(NoSuchViewError, lambda: catalog.drop_view((*top, "none")), "none")
    lake.raises(TableAlreadyExistsError, lambda: catalog.create_table((*top, "mv"), ARROW), "mv")

    storage = view.storage()
    rows = storage.scan().to_arrow()
    for act in (
        lambda: storage.append(rows),
        lambda: storage.overwrite(rows),
        lambda: storage.delete("n > 0"),
        lambda: catalog.drop_table((*top, "mv__storage")),
        lambda: catalog.rename_table((*top, "mv__storage"), (*top, "stolen")),
    ):
        lake.raises(ForbiddenError, act, "mv__storage is the storage table of materialized view py_catalog.mv")
    lake.same_rows(view.rows(), rows.to_pylist(), "rows after refused writes")
    catalog.drop_view((*top, "mv"))
    lake.raises(NoSuchTableError, lambda: catalog.load_table((*top, "mv__storage")), "mv__storage")


def own_views(catalog, top):
    """Plain views, as PyIceberg makes them."""
    version = ViewVersion(
        schema_id=0, default_namespace=top,
        representations=[ViewRepresentation(SQLViewRepresentation(type="sql", sql="SELECT id FROM back", dialect="spark"))],
    )
    made = catalog.create_view((*top, "plain"), pa.schema([("id", pa.int64())]), version, properties={"comment": "mine"})
    loaded = catalog.load_view((*top, "plain"))
    lake.equal(loaded.metadata, made.metadata, "view metadata")
    lake.equal(loaded.metadata.properties, {"comment": "mine"}, "view properties")
    lake.raises(ViewAlreadyExistsError, lambda: catalog.create_view((*top, "plain"), pa.schema([("id", pa.int64())]), version), "plain")
    lake.equal(catalog.list_views(top), [(*top, "plain")], "views")
    catalog.drop_view((*top, "plain"))
    lake.raises(NoSuchViewError, lambda: catalog.load_view((*top, "plain")), "plain")


def main():
    catalog = lake.catalog()
    top, nested = namespaces(catalog)
    tables(catalog, top, nested)
    commits(catalog, top)
    views(catalog, top)
    own_views(catalog, top)


sys.exit(main())
