package publish

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// dataFiles describes the files that an engine wrote, from their footers. A file that is
// not what the engine said, or does not fit the table, is refused: once published, its
// rows would be the view's answer.
func (p *Publisher) dataFiles(ctx context.Context, meta table.Metadata, outputs []mv.OutputFile) ([]iceberg.DataFile, error) {
	seen := make(map[string]bool, len(outputs))
	files := make([]iceberg.DataFile, 0, len(outputs))
	for _, out := range outputs {
		if seen[out.Path] {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "file %s is to be added twice", out.Path)
		}
		seen[out.Path] = true
		if out.Records == 0 {
			continue // an empty file adds nothing but a name
		}
		f, err := p.dataFile(ctx, meta, out)
		if err != nil {
			return nil, catalog.Errorf(catalog.KindUnprocessable, "file %s cannot be published", out.Path).Because(err)
		}
		files = append(files, f)
	}
	return files, nil
}

func (p *Publisher) dataFile(ctx context.Context, meta table.Metadata, out mv.OutputFile) (f iceberg.DataFile, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("parquet reader: %v", r)
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in, err := p.fs.Open(out.Path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	pf, err := file.NewParquetReader(in)
	if err != nil {
		return nil, err
	}
	defer pf.Close()
	if info.Size() != out.Bytes || pf.NumRows() != out.Records {
		return nil, fmt.Errorf("it has %d bytes and %d rows, the engine reported %d and %d", info.Size(), pf.NumRows(), out.Bytes, out.Records)
	}
	if err := checkColumns(pf.MetaData().Schema, meta.CurrentSchema()); err != nil {
		return nil, err
	}
	spec := meta.PartitionSpec()
	values, err := partitionOf(ctx, pf, &spec, meta.CurrentSchema())
	if err != nil {
		return nil, err
	}
	return table.DataFileFromMetadata(table.DataFileArgs{
		Schema: meta.CurrentSchema(), Spec: spec, Format: iceberg.ParquetFile, Metadata: pf.MetaData(), FilePath: out.Path,
		FileSize: out.Bytes, Content: iceberg.EntryContentData, PartitionValues: values, Properties: meta.Properties(),
		FormatVersion: meta.Version(),
	})
}

// checkColumns compares names and field ids: readers go by the id, the bounds that we
// compute go by the name.
func checkColumns(got *schema.Schema, want *iceberg.Schema) error {
	root := got.Root()
	for i := range root.NumFields() {
		node := root.Field(i)
		f, ok := want.FindFieldByName(node.Name())
		if !ok {
			return fmt.Errorf("column %q is not in the storage table", node.Name())
		}
		if int(node.FieldID()) != f.ID {
			return fmt.Errorf("column %q has field id %d, the storage table has %d", node.Name(), node.FieldID(), f.ID)
		}
	}
	if root.NumFields() != want.NumFields() {
		return fmt.Errorf("it has %d columns, the storage table has %d", root.NumFields(), want.NumFields())
	}
	return nil
}
