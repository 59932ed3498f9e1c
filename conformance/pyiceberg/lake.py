"""What the scenarios share: the catalog, catalogd's own operations, comparing rows."""

import datetime
import decimal
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter

from pyiceberg.catalog import load_catalog

URI = os.environ["CATALOGD_URI"]


def catalog():
    """The catalog as the README tells PyIceberg users to load it."""
    return load_catalog("catalogd", type="rest", uri=URI, warehouse="main")


def call(method, path, body=None):
    """Sends a request that PyIceberg has no word for; returns the status and the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URI + path, data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=150) as answer:
            status, raw = answer.status, answer.read()
    except urllib.error.HTTPError as e:
        status, raw = e.code, e.read()
    return status, json.loads(raw) if raw.strip() else None


def must(method, path, body=None):
    status, answer = call(method, path, body)
    if status >= 300:
        fail(f"{method} {path} = {status} {answer}")
    return answer


def fail(text):
    print(text)
    sys.exit(1)


def equal(got, want, what):
    if got != want:
        fail(f"{what}:\n  got  {got!r}\n  want {want!r}")


def holds(condition, what):
    if not condition:
        fail(what)


def raises(kind, act, *says):
    """Checks that act raises kind, with these words for the user."""
    try:
        act()
    except kind as e:
        for word in says:
            holds(word in str(e), f"{kind.__name__} does not say {word!r}: {e}")
        return
    except Exception as e:  # noqa: BLE001: the wrong kind is what is reported
        fail(f"want {kind.__name__}, got {type(e).__name__}: {e}")
    fail(f"want {kind.__name__}, nothing was raised")


def bag(rows):
    """Rows as a multiset: their order means nothing, how often they occur does."""
    return Counter(tuple(sorted(row.items())) for row in rows)


def same_rows(got, want, what):
    """Compares two lists of rows as bags and prints what differs."""
    got, want = bag(got), bag(want)
    if got == want:
        return
    lines = [f"{what}: {sum(got.values())} rows, want {sum(want.values())}"]
    lines += [f"  - missing {n} × {dict(row)}" for row, n in list((want - got).items())[:10]]
    lines += [f"  + extra   {n} × {dict(row)}" for row, n in list((got - want).items())[:10]]
    fail("\n".join(lines))


def rows_of(table, **scan):
    return table.scan(**scan).to_arrow().to_pylist()


def day(n):
    return datetime.date(2024, 1, 1) + datetime.timedelta(days=n)


def moment(n, hour=0, minute=0):
    return datetime.datetime(2024, 1, 1, hour, minute) + datetime.timedelta(days=n)


def cents(n):
    return decimal.Decimal(n).scaleb(-2)


class View:
    """A materialized view of a namespace."""

    def __init__(self, lake, namespace, name):
        self.lake, self.namespace, self.name = lake, namespace, name
        encoded = urllib.parse.quote("\x1f".join(namespace), safe="")
        self.path = f"/catalogd/v1/main/namespaces/{encoded}/views/{name}"
        self.rest = f"/v1/main/namespaces/{encoded}/views/{name}"

    @classmethod
    def create(cls, lake, namespace, name, sql, **more):
        body = {"namespace": list(namespace), "name": name, "sql": sql, **more}
        must("POST", "/catalogd/v1/main/materialized-views", body)
        return cls(lake, namespace, name)

    def freshness(self):
        return must("GET", self.path + "/freshness")

    def status(self, status, up_to_date, reason):
        f = self.freshness()
        equal((f["status"], f["up-to-date"], f["reason"]), (status, up_to_date, reason), f"freshness of {self.name} ({f.get('detail')})")
        return f

    def refresh(self, **body):
        """Waits for a run that started after the call, and wants it to succeed."""
        status, run = call("POST", self.path + "/refresh?wait=true&timeout=120s", body)
        if status != 200 or run["status"] != "succeeded":
            fail(f"refresh of {self.name} = {status} {run}")
        return run

    def suspend(self):
        """Stops automatic refreshes, also one that is under way."""
        must("POST", self.path + "/suspend")
        until(lambda: self.freshness()["job"] != "running", f"the run of {self.name} ends")

    def resume(self):
        must("POST", self.path + "/resume")

    def storage(self):
        return self.lake.load_table((*self.namespace, f"{self.name}__storage"))

    def rows(self):
        return rows_of(self.storage())


def until(done, what):
    end = time.monotonic() + 60
    while not done():
        if time.monotonic() > end:
            fail(f"not within a minute: {what}")
        time.sleep(0.05)
