"""Gives schemathesis something to work on: without it, hardly a request gets past the names.

Most requests that it makes from our OpenAPI documents are turned to objects that exist, and
their opaque documents to ones that are nearly right. The rest stays as it was made up.
Every choice follows from the request, so that a seed repeats a run.
"""

import os
import random
import zlib

import requests
import schemathesis

URI = os.environ["CATALOGD_URI"].rstrip("/")
SPACE = f"{URI}/v1/main/namespaces/st"
NAMES = {
    "prefix": ["main"],
    "warehouse": ["main"],
    "namespace": ["st", "st", "st", "st\x1fa/b"],
    "table": ["t", "t", "t", "v"],
    "view": ["v", "v", "m", "t"],
}
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "day", "required": False, "type": "date"},
]}
VERSION = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["st"],
           "representations": [{"type": "sql", "sql": "SELECT id, day FROM t", "dialect": "spark"}]}
SPEC = {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "d", "transform": "month"}]}
ORDER = {"order-id": 1, "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-last"}]}
SNAPSHOT = {"snapshot-id": 7, "sequence-number": 1, "timestamp-ms": 1, "manifest-list": "file:///nowhere/l.avro",
            "schema-id": 0, "summary": {"operation": "append"}}
UPDATES = [
    {"action": "set-properties", "updates": {"k": "v", "empty": ""}},
    {"action": "remove-properties", "removals": ["k", "never"]},
    {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": SPEC},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "remove-partition-specs", "spec-ids": [1]},
    {"action": "remove-schemas", "schema-ids": [1]},
    {"action": "add-sort-order", "sort-order": ORDER},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "upgrade-format-version", "format-version": 3},
    {"action": "assign-uuid", "uuid": "0193a1b2-0000-7000-8000-000000000000"},
    {"action": "set-location", "location": "file:///elsewhere"},
    {"action": "add-snapshot", "snapshot": SNAPSHOT},
    {"action": "remove-snapshots", "snapshot-ids": [7]},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    {"action": "remove-snapshot-ref", "ref-name": "main"},
    {"action": "set-statistics", "statistics": {"snapshot-id": 7, "statistics-path": "file:///s", "file-size-in-bytes": 1,
                                                "file-footer-size-in-bytes": 1, "blob-metadata": []}},
    {"action": "add-view-version", "view-version": VERSION},
    {"action": "set-current-view-version", "view-version-id": -1},
    {"action": "unheard-of"},
]
REQUIREMENTS = [
    {"type": "assert-create"},
    {"type": "assert-table-uuid", "uuid": "0193a1b2-0000-7000-8000-000000000000"},
    {"type": "assert-view-uuid", "uuid": "0193a1b2-0000-7000-8000-000000000000"},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    {"type": "unheard-of"},
]
FILTERS = [True, {"type": "eq", "term": "id", "value": 1}, {"type": "not-null", "term": "day"},
           {"type": "and", "left": True, "right": {"type": "in", "term": "nothing", "values": [1, 2]}}]
DOCUMENTS = {"schema": SCHEMA, "view-version": VERSION, "partition-spec": SPEC, "write-order": ORDER}


def make():
    """Makes the objects that requests are turned to; those that are there stay."""
    def post(path, body):
        answer = requests.post(URI + path, json=body, timeout=60)
        assert answer.status_code in (200, 201, 409), f"{path}: {answer.status_code} {answer.text}"

    post("/catalogd/v1/warehouses", {"name": "spare"})
    post("/v1/main/namespaces", {"namespace": ["st"]})
    post("/v1/main/namespaces", {"namespace": ["st", "a/b"]})
    post("/v1/main/namespaces/st/tables", {"name": "t", "schema": SCHEMA})
    post("/v1/main/namespaces/st/views", {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {}})
    post("/catalogd/v1/main/materialized-views", {"namespace": ["st"], "name": "m", "sql": "SELECT id, count(*) AS n FROM t GROUP BY id"})


def document(chance, name, value):
    """Replaces a member of a body, most of the time."""
    if name == "updates" and isinstance(value, list):
        made_up = [u for u in value if isinstance(u, dict) and chance.random() < 0.1]
        return chance.sample(UPDATES, chance.randint(1, 2)) + made_up
    if name == "requirements" and isinstance(value, list):
        return chance.sample(REQUIREMENTS, chance.choice([0, 0, 0, 1, 2]))
    if name == "filter":
        return chance.choice(FILTERS)
    if name in ("source", "destination", "identifier"):
        return {"namespace": ["st"], "name": chance.choice(["t", "v", "m", "u"])}
    if name == "table-changes" and isinstance(value, list):
        return [body(chance, c) for c in value]
    return DOCUMENTS.get(name, value)


def body(chance, made):
    if not isinstance(made, dict):
        return made
    return {k: document(chance, k, v) if chance.random() < 0.8 else v for k, v in made.items()}


state = {"whole": False}


@schemathesis.hook
def before_call(context, case, kwargs):
    chance = random.Random(zlib.crc32(repr((case.method, case.path, case.path_parameters, case.body)).encode()))
    if not state["whole"]:
        make()
        state["whole"] = True
    for name, names in NAMES.items():
        if case.path_parameters and name in case.path_parameters and chance.random() < 0.85:
            case.path_parameters[name] = chance.choice(names)
    if case.path_parameters and case.operation.path.startswith("/catalogd/v1/warehouses/"):
        case.path_parameters["warehouse"] = "spare"  # the other requests need main as it is
    case.body = body(chance, case.body)
    # A made-up key is no UUIDv7, and nothing but that would be found out.
    foreign = case.method.upper() != case.operation.method.upper()
    if case.headers and "Idempotency-Key" in case.headers and (foreign or chance.random() < 0.9):
        case.headers["Idempotency-Key"] = f"0193a1b2-0000-7000-8000-{chance.randrange(1 << 48):012x}"


@schemathesis.hook
def after_call(context, case, response):
    if case.method.upper() not in ("GET", "HEAD") and response.status_code // 100 == 2:
        state["whole"] = False
