"""Runs PyIceberg's own integration tests against a catalogd, as a pytest plugin.

The tests come in PyIceberg's source distribution and expect its development containers: a
catalog on localhost:8181, S3 beside it, Spark and Hive. The plugin sends every REST catalog
that they open to CATALOGD_URI, leaves out what needs one of the others, and treats the
tests that exceptions.txt names as it says there. What it did is written to SUITE_SUMMARY.
"""

import collections
import importlib.util
import json
import os
import pathlib
import sys
import types

import pytest

URI = os.environ["CATALOGD_URI"].rstrip("/")
CONTAINER = "http://localhost:8181"
# What catalogd can do and other servers may not: it switches further tests on.
CAPABILITIES = {
    "supports_slash_in_identifier": "true",
    "supports_dot_in_identifier": "true",
    "supports_nested_namespaces": "true",
    "supports_purge_table": "true",
    "supports_schema_evolution": "true",
    "supports_atomic_concurrent_updates": "true",
}
# Fixtures that stand for something that is not a REST catalog.
SERVICES = {
    "spark": "needs Spark",
    "session_catalog_hive": "needs a Hive metastore",
    "hive_catalog": "needs a Hive metastore",
    "memory_catalog": "tests PyIceberg's own memory catalog",
    "sqlite_catalog_memory": "tests PyIceberg's own SQL catalog",
    "sqlite_catalog_file": "tests PyIceberg's own SQL catalog",
}
# Modules that the tests import and that no test which is kept uses.
ABSENT = {
    "boto3": {"client": object},
    "botocore": {},
    "botocore.config": {"Config": object},
    "moto": {"mock_aws": None},
    "pyspark": {},
    "pyspark.sql": {"SparkSession": type("SparkSession", (), {}), "DataFrame": type("DataFrame", (), {})},
    "pyspark.sql.utils": {"AnalysisException": type("AnalysisException", (Exception,), {})},
}


def stand_in():
    """Puts empty modules in the place of those that are not installed."""
    for name, members in ABSENT.items():
        try:
            found = importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            found = False
        if not found:
            module = types.ModuleType(name)
            vars(module).update(members)
            sys.modules[name] = module
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, module)


def redirect():
    """Makes each REST catalog of the containers one of catalogd."""
    from pyiceberg.catalog.rest import RestCatalog

    original = RestCatalog.__init__

    def init(self, name, **properties):
        if str(properties.get("uri", "")).rstrip("/") in (CONTAINER, URI):
            properties = {k: v for k, v in properties.items() if not k.startswith("s3.")}
            properties |= CAPABILITIES | {"uri": URI}
        original(self, name, **properties)

    RestCatalog.__init__ = init


def exceptions():
    """Reads exceptions.txt: what to do with a test or a file, and why."""
    out = {}
    for line in pathlib.Path(__file__).with_name("exceptions.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            how, test, *reason = line.split(maxsplit=2)
            assert how in ("skip", "keep", "fail"), line
            out[test] = (how, "".join(reason))
    return out


def fixtures(item):
    """Names the fixtures of a test, those behind lazy parameters included."""
    names = set(item.fixturenames)
    spec = getattr(item, "callspec", None)
    for value in spec.params.values() if spec else ():
        if isinstance(getattr(value, "name", None), str):
            names.add(value.name)
    return names


class Suite:
    """Selects the tests and counts what became of them."""

    def __init__(self):
        self.known = exceptions()
        self.unused = set(self.known)
        self.left_out = collections.Counter()
        self.outcomes = collections.Counter()

    def reason(self, item):
        """Says why a test is left out, or nothing."""
        used = fixtures(item)
        for service, reason in SERVICES.items():
            if service in used:
                return reason
        if "rest_catalog" in used and "rest_catalog" not in item.fixturenames:
            return "is run with rest_test_catalog, the same catalog here"
        for test in (item.nodeid.split("[")[0], item.nodeid.split("::")[0]):
            if test not in self.known:
                continue
            self.unused.discard(test)
            how, reason = self.known[test]
            if how == "fail":
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
            return reason if how == "skip" else None
        return None

    def pytest_collection_modifyitems(self, config, items):
        keep, drop = [], []
        for item in items:
            reason = self.reason(item)
            if reason:
                self.left_out[reason] += 1
            (drop if reason else keep).append(item)
        config.hook.pytest_deselected(items=drop)
        items[:] = keep

    def pytest_sessionstart(self):
        """Makes what the tests expect Spark to have made before them."""
        import pyarrow as pa
        from pyiceberg.catalog.rest import RestCatalog

        catalog = RestCatalog("suite", uri=URI)
        catalog.create_namespace_if_not_exists("default")
        schema = pa.schema([("number", pa.int32())])
        table = catalog.create_table_if_not_exists("default.test_table_snapshot_operations", schema=schema)
        for n in range(5):
            table.append(pa.table({"number": [n]}, schema=schema))

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "wasxfail"):
            if report.when == "call" or report.failed:
                self.outcomes["expected" if report.skipped else "failed"] += 1
        elif report.when == "call" or report.outcome != "passed":
            self.outcomes[report.outcome] += 1

    def pytest_terminal_summary(self, terminalreporter):
        for reason, count in sorted(self.left_out.items()):
            terminalreporter.write_line(f"left out: {count:4} {reason}")
        for test in sorted(self.unused):
            terminalreporter.write_line(f"exceptions.txt names {test}, which no longer exists")

    def pytest_sessionfinish(self):
        summary = dict(self.outcomes) | {"left_out": self.left_out.total(), "unused": sorted(self.unused)}
        if path := os.environ.get("SUITE_SUMMARY"):
            pathlib.Path(path).write_text(json.dumps(summary))


def pytest_load_initial_conftests(early_config):
    """Starts before anything of the suite is imported."""
    stand_in()
    redirect()
    early_config.pluginmanager.register(Suite(), "catalogd-suite")
