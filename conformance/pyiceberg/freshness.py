"""Every state that a materialized view can be in, on real data, and the way out of it."""

import json
import sys

import pyarrow as pa
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table.snapshots import Operation, Summary

import lake

ARROW = pa.schema([("day", pa.date32()), ("n", pa.int64())])
NAMESPACE = ("py_freshness",)


def arrow(*days):
    return pa.Table.from_pylist([{"day": lake.day(d), "n": d + 1} for d in days], schema=ARROW)


def rewrite(table, rows, operation, properties):
    """Puts rows in the place of all files, in one snapshot: PyIceberg's overwrite makes two."""
    files = [task.file for task in table.scan().plan_files()]
    with table.transaction() as tx:
        with tx.update_snapshot(snapshot_properties=properties).overwrite() as overwrite:
            for file in files:
                overwrite.delete_data_file(file)
            for file in _dataframe_to_data_files(table_metadata=tx.table_metadata, df=rows, io=table.io):
                overwrite.append_data_file(file)
            summarise = overwrite._summary

            def summary(more):
                return Summary(operation, **summarise(more).additional_properties)

            overwrite._summary = summary
    lake.equal(table.current_snapshot().summary.operation, operation, "operation")


def compact(table):
    """Rewrites all files into one, as a snapshot that says so."""
    rewrite(table, table.scan().to_arrow(), Operation.REPLACE, {})


class Scene:
    def __init__(self, catalog, name):
        self.catalog = catalog
        self.name = name
        self.table = catalog.create_table((*NAMESPACE, name), ARROW)
        self.view = lake.View.create(catalog, NAMESPACE, f"{name}_v", f"SELECT day, sum(n) AS n, count(*) AS c FROM {name} GROUP BY day")

    def check(self, what):
        want = {}
        for r in lake.rows_of(self.catalog.load_table((*NAMESPACE, self.name))):
            n, c = want.get(r["day"], (0, 0))
            want[r["day"]] = (n + r["n"], c + 1)
        lake.same_rows(self.view.rows(), [{"day": d, "n": n, "c": c} for d, (n, c) in want.items()], f"{self.view.name} after {what}")

    def fresh(self, what):
        run = self.view.refresh()
        self.check(what)
        self.view.status("fresh", True, "UP_TO_DATE")
        return run

    def properties(self, **changes):
        updates = {k.replace("_", "-"): v for k, v in changes.items()}
        lake.must("POST", self.view.rest, {"requirements": [], "updates": [{"action": "set-properties", "updates": updates}]})


def never(catalog):
    catalog.create_table((*NAMESPACE, "never"), ARROW).append(arrow(1))
    view = lake.View.create(catalog, NAMESPACE, "never_v", "SELECT day FROM never", properties={"catalogd.refresh": "external"})
    f = view.status("never-refreshed", False, "NEVER_REFRESHED")
    lake.equal(f["storage-snapshot-id"], None, "storage snapshot")
    status, answer = lake.call("POST", view.path + "/refresh?wait=true", {})
    lake.equal(status, 409, f"refresh of an external view ({answer})")


def stale(catalog):
    s = Scene(catalog, "stale")
    s.table.append(arrow(1, 2))
    s.fresh("append")
    reflected = s.table.current_snapshot().snapshot_id
    s.view.suspend()
    s.table.append(arrow(3))
    s.table.append(arrow(4))
    ids = [s.table.current_snapshot().parent_snapshot_id, s.table.current_snapshot().snapshot_id]
    f = s.view.status("stale", False, "SOURCE_CHANGED")
    lake.holds(f.get("stale-since") and f["suspended"], f"stale since when: {f}")
    behind = f["behind"][0]
    lake.equal((behind["recorded-snapshot-id"], behind["current-snapshot-id"], behind["snapshot-ids"]), (reflected, ids[1], ids), "behind")
    s.properties(max_staleness_ms="3600000")
    s.view.status("fresh", False, "WITHIN_MAX_STALENESS")
    s.properties(max_staleness_ms="1")
    s.view.status("stale", False, "SOURCE_CHANGED")
    s.properties(max_staleness_ms="0")
    s.view.resume()
    s.fresh("resume")


def compacted(catalog):
    s = Scene(catalog, "compacted")
    for d in range(4):
        s.table.append(arrow(d, d + 1))
    s.fresh("appends")
    s.view.suspend()
    compact(s.table)
    s.view.resume()
    run = s.view.refresh()
    lake.equal((run["strategy"], run["rows"]), ("none", 0), f"refresh after a compaction {run}")
    f = s.view.freshness()
    lake.equal((f["status"], f["up-to-date"]), ("fresh", True), f"freshness after a compaction {f}")
    s.check("compaction")
    s.table.append(arrow(9))
    s.fresh("append after compaction")


def rolled_back(catalog):
    s = Scene(catalog, "rolled")
    s.table.append(arrow(1, 2))
    first = s.table.current_snapshot().snapshot_id
    s.table.append(arrow(3))
    s.fresh("appends")
    s.view.suspend()
    lake.must("POST", f"/v1/main/namespaces/{NAMESPACE[0]}/tables/rolled", {
        "requirements": [], "updates": [{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": first}],
    })
    f = s.view.status("stale", False, "SOURCE_ROLLED_BACK")
    lake.equal(f["behind"][0]["snapshot-ids"], None, "snapshots between, of a broken chain")
    s.view.resume()
    s.fresh("rollback")
    catalog.load_table((*NAMESPACE, "rolled")).append(arrow(5))
    s.fresh("append after rollback")


def dropped(catalog):
    s = Scene(catalog, "dropped")
    s.table.append(arrow(1, 2))
    s.fresh("append")
    s.view.suspend()
    kept = s.view.rows()
    catalog.drop_table((*NAMESPACE, "dropped"))
    s.properties(max_staleness_ms="3600000")  # invalid comes before age
    f = s.view.status("invalid", False, "SOURCE_MISSING")
    lake.holds("py_freshness.dropped" in f["detail"], f"the source is not named: {f}")
    lake.same_rows(s.view.rows(), kept, "rows after the source was dropped")
    s.table = catalog.create_table((*NAMESPACE, "dropped"), ARROW)
    s.table.append(arrow(1, 7))
    f = s.view.freshness()
    lake.equal((f["up-to-date"], f["behind"][0]["reason"]), (False, "SOURCE_RECREATED"), "a source that was made anew")
    s.properties(max_staleness_ms="0")
    s.view.status("stale", False, "SOURCE_RECREATED")
    s.view.resume()
    run = s.fresh("recreation")
    lake.equal(run["reason"], "SOURCE_RECREATED", "reason of the full refresh")

    catalog.rename_table((*NAMESPACE, "dropped"), (*NAMESPACE, "moved"))
    s.view.status("invalid", False, "SOURCE_MISSING")
    catalog.rename_table((*NAMESPACE, "moved"), (*NAMESPACE, "dropped"))
    s.fresh("rename and back")


def nested(catalog):
    s = Scene(catalog, "base")
    s.table.append(arrow(1, 2))
    s.fresh("append")
    top = lake.View.create(catalog, NAMESPACE, "top", "SELECT count(*) AS days, sum(n) AS n FROM base_v")
    top.refresh()
    lake.same_rows(top.rows(), [{"days": 2, "n": 5}], "top")
    s.view.suspend()
    s.table.append(arrow(3))
    f = top.status("stale", False, "SOURCE_MV_STALE")
    lake.equal((f["direct"]["up-to-date"], f["recursive"]["up-to-date"]), (True, False), "direct and recursive")
    s.view.resume()
    s.fresh("resume")
    top.refresh()
    lake.same_rows(top.rows(), [{"days": 3, "n": 9}], "top after its source")
    top.status("fresh", True, "UP_TO_DATE")


def external(catalog):
    """An engine of its own refreshes the view: its snapshot says what it read."""
    table = catalog.create_table((*NAMESPACE, "read"), ARROW)
    table.append(arrow(1, 2))
    view = lake.View.create(catalog, NAMESPACE, "external_v", "SELECT day, n FROM read", properties={"catalogd.refresh": "external"})

    def state(version=1, uuid=None, **more):
        source = {
            "type": "table", "namespace": list(NAMESPACE), "name": "read", "uuid": uuid or str(table.metadata.table_uuid),
            "snapshot-id": table.current_snapshot().snapshot_id, **more,
        }
        return {"refresh-state": json.dumps({"view-version-id": version, "refresh-start-timestamp-ms": 1, "source-states": [source]})}

    storage = view.storage()
    rows = table.scan().to_arrow()
    for wrong in ({}, state(version=7), state(uuid="00000000-0000-0000-0000-000000000000"), {"refresh-state": "{"}):
        lake.raises(ForbiddenError, lambda: storage.append(rows, snapshot_properties=wrong), "external_v__storage")
    view.status("never-refreshed", False, "NEVER_REFRESHED")
    storage.append(rows, snapshot_properties=state())
    f = view.status("fresh", True, "UP_TO_DATE")
    lake.equal(f["storage-snapshot-id"], storage.current_snapshot().snapshot_id, "storage snapshot")
    table.append(arrow(3))
    view.status("stale", False, "SOURCE_CHANGED")
    rewrite(storage, table.scan().to_arrow(), Operation.OVERWRITE, state())
    lake.same_rows(view.rows(), lake.rows_of(table), "rows of an external refresh")


def main():
    catalog = lake.catalog()
    catalog.create_namespace(NAMESPACE)
    for scenario in (never, stale, compacted, rolled_back, dropped, nested, external):
        scenario(catalog)


sys.exit(main())
