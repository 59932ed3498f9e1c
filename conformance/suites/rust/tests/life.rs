//! What a program in Rust does with a table from its first day to its last.

mod common;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Int32Array, RecordBatch, StringArray};
use common::{cleanup_namespace_dyn, connect, table_creation};
use futures::TryStreamExt;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::expr::Reference;
use iceberg::spec::{DataFile, DataFileFormat, Datum};
use iceberg::table::Table;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::ParquetWriterBuilder;
use iceberg::writer::file_writer::location_generator::{DefaultFileNameGenerator, DefaultLocationGenerator};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::{IcebergWriter, IcebergWriterBuilder};
use iceberg::{Catalog, ErrorKind, NamespaceIdent, Result, TableIdent};
use parquet::file::properties::WriterProperties;

/// Writes rows (n, "row n") as one Parquet file of the table.
async fn write(table: &Table, rows: std::ops::Range<i32>) -> Result<Vec<DataFile>> {
    let schema = Arc::new(schema_to_arrow_schema(table.metadata().current_schema())?);
    let texts: Vec<String> = rows.clone().map(|n| format!("row {n}")).collect();
    let name = format!("rows-{}", rows.start);
    let batch = RecordBatch::try_new(
        schema,
        vec![Arc::new(Int32Array::from_iter_values(rows)), Arc::new(StringArray::from(texts))],
    )
    .unwrap();
    let files = RollingFileWriterBuilder::new_with_default_file_size(
        ParquetWriterBuilder::new(WriterProperties::default(), table.metadata().current_schema().clone()),
        table.file_io().clone(),
        DefaultLocationGenerator::new(table.metadata())?,
        DefaultFileNameGenerator::new(name, None, DataFileFormat::Parquet),
    );
    let mut writer = DataFileWriterBuilder::new(files).build(None).await?;
    writer.write(batch).await?;
    writer.close().await
}

/// Appends a file and returns the table as the catalog answered.
async fn append(catalog: &dyn Catalog, table: &Table, files: Vec<DataFile>) -> Result<Table> {
    let tx = Transaction::new(table);
    let tx = tx.fast_append().add_data_files(files).apply(tx)?;
    tx.commit(catalog).await
}

/// Reads the numbers that are at least `from`, sorted.
async fn numbers(table: &Table, from: i32) -> Result<Vec<i32>> {
    let filter = Reference::new("foo").greater_than_or_equal_to(Datum::int(from));
    let batches: Vec<RecordBatch> =
        table.scan().select(["foo"]).with_filter(filter).build()?.to_arrow().await?.try_collect().await?;
    let mut out: Vec<i32> = batches
        .iter()
        .flat_map(|b| b.column(0).as_any().downcast_ref::<Int32Array>().unwrap().values().to_vec())
        .collect();
    out.sort();
    Ok(out)
}

#[tokio::test(flavor = "multi_thread")]
async fn life_of_a_table() -> Result<()> {
    let catalog = connect().await;
    // The client puts names into URLs as they are, so that `/`, `%`, `?` and `#` cannot work.
    let namespace = NamespaceIdent::from_strs(["rust life", "a.b c"])?;
    let parent = NamespaceIdent::new("rust life".to_string());
    cleanup_namespace_dyn(&catalog, &namespace).await;
    cleanup_namespace_dyn(&catalog, &parent).await;
    catalog.create_namespace(&parent, HashMap::new()).await?;
    catalog.create_namespace(&namespace, HashMap::from([("owner".to_string(), "rust".to_string())])).await?;
    assert_eq!(catalog.list_namespaces(Some(&parent)).await?, vec![namespace.clone()]);

    let table = catalog.create_table(&namespace, table_creation("träume & tables")).await?;
    let table = append(&catalog, &table, write(&table, 0..3).await?).await?;
    append(&catalog, &table, write(&table, 3..5).await?).await?;
    let ident = TableIdent::new(namespace.clone(), "träume & tables".to_string());
    let loaded = catalog.load_table(&ident).await?;
    assert_eq!(numbers(&loaded, 0).await?, [0, 1, 2, 3, 4]);
    assert_eq!(numbers(&loaded, 3).await?, [3, 4]);
    assert_eq!(loaded.metadata().snapshots().count(), 2);
    assert_eq!(loaded.metadata().history().len(), 2);

    let moved = TableIdent::new(parent.clone(), "moved".to_string());
    catalog.rename_table(&ident, &moved).await?;
    assert_eq!(catalog.list_tables(&namespace).await?, vec![]);
    assert_eq!(catalog.list_tables(&parent).await?, vec![moved.clone()]);
    assert_eq!(catalog.load_table(&ident).await.unwrap_err().kind(), ErrorKind::TableNotFound);
    let loaded = catalog.load_table(&moved).await?;
    assert_eq!(numbers(&loaded, 4).await?, [4]);
    catalog.drop_table(&moved).await?;
    assert!(!catalog.table_exists(&moved).await?);
    catalog.drop_namespace(&namespace).await?;
    catalog.drop_namespace(&parent).await?;
    assert!(!catalog.namespace_exists(&parent).await?);
    Ok(())
}

/// Writers of one table race with the state that each of them read: the client loads anew
/// and tries again, and no row may be lost.
#[tokio::test(flavor = "multi_thread")]
async fn appends_that_race() -> Result<()> {
    const WRITERS: i32 = 4;
    const APPENDS: i32 = 3;
    let catalog = Arc::new(connect().await);
    let namespace = NamespaceIdent::new("rust races".to_string());
    cleanup_namespace_dyn(catalog.as_ref(), &namespace).await;
    catalog.create_namespace(&namespace, HashMap::new()).await?;
    let creation = iceberg::TableCreation {
        properties: HashMap::from([("commit.retry.num-retries".to_string(), "100".to_string())]),
        ..table_creation("t")
    };
    let table = catalog.create_table(&namespace, creation).await?;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (catalog, table) = (catalog.clone(), table.clone());
        writers.spawn(async move {
            for n in 0..APPENDS {
                let row = writer * APPENDS + n;
                let files = write(&table, row..row + 1).await?;
                append(catalog.as_ref(), &table, files).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap()?;
    }
    let loaded = catalog.load_table(table.identifier()).await?;
    assert_eq!(numbers(&loaded, 0).await?, (0..WRITERS * APPENDS).collect::<Vec<_>>());
    cleanup_namespace_dyn(catalog.as_ref(), &namespace).await;
    Ok(())
}
