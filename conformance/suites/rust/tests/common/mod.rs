//! The module `common` of iceberg-catalog-loader's suites, for catalogd alone.

#![allow(dead_code)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use iceberg::io::{FileIO, LocalFsStorageFactory};
use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use iceberg::{Catalog, CatalogBuilder, NamespaceIdent, TableCreation};
use iceberg_catalog_rest::{REST_CATALOG_PROP_URI, RestCatalog, RestCatalogBuilder};

/// The catalogs for which the suites have cases. Only those named `rest_catalog` are run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CatalogKind {
    Rest,
    Glue,
    Hms,
    Sql,
    S3Tables,
    Memory,
}

pub struct CatalogHarness {
    pub catalog: Arc<dyn Catalog>,
    pub label: &'static str,
}

/// Connects to the catalogd that CATALOGD_URI names.
pub async fn connect() -> RestCatalog {
    let uri = std::env::var("CATALOGD_URI").expect("CATALOGD_URI names the server");
    RestCatalogBuilder::default()
        .with_storage_factory(Arc::new(LocalFsStorageFactory))
        .load("catalogd", HashMap::from([(REST_CATALOG_PROP_URI.to_string(), uri)]))
        .await
        .expect("the catalog answers")
}

/// Gives a case its catalog. A case of another catalog fails, so that no filter can make
/// it look as if it had been tested.
pub async fn load_catalog(kind: CatalogKind) -> Option<CatalogHarness> {
    assert_eq!(kind, CatalogKind::Rest, "only cases of the REST catalog are run here");
    Some(CatalogHarness { catalog: Arc::new(connect().await), label: "rest" })
}

/// A table with an int and a string, both required.
pub fn table_creation(name: impl ToString) -> TableCreation {
    let schema = Schema::builder()
        .with_fields(vec![
            NestedField::required(1, "foo", Type::Primitive(PrimitiveType::Int)).into(),
            NestedField::required(2, "bar", Type::Primitive(PrimitiveType::String)).into(),
        ])
        .build()
        .unwrap();
    TableCreation::builder().name(name.to_string()).schema(schema).build()
}

pub fn assert_map_contains(expected: &HashMap<String, String>, actual: &HashMap<String, String>) {
    for (key, value) in expected {
        assert_eq!(actual.get(key), Some(value), "{key}");
    }
}

/// Removes what an earlier run left.
pub async fn cleanup_namespace_dyn(catalog: &dyn Catalog, namespace: &NamespaceIdent) {
    for table in catalog.list_tables(namespace).await.unwrap_or_default() {
        let _ = catalog.purge_table(&table).await;
    }
    let _ = catalog.drop_namespace(namespace).await;
}

/// Waits until a file is gone: a purge answers first and deletes then.
pub async fn is_there_for_good(io: &FileIO, location: &str) -> iceberg::Result<bool> {
    for _ in 0..600 {
        if !io.exists(location).await? {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(true)
}
