package changes

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"

	"github.com/catalogd/catalogd/catalog"
)

const positionFieldID = 2147483545 // of a position delete file

// positions counts the distinct rows of a data file that several position delete files
// name; they may name a row twice, so their record counts prove nothing.
func (w *walk) positions(ctx context.Context, data *entry, deletes []*entry) (rows int64, known bool, err error) {
	hit := roaring64.New()
	for _, del := range deletes {
		if del.file.FileFormat() != iceberg.ParquetFile {
			return 0, false, nil
		}
		raw, err := w.load(ctx, del.file.FilePath())
		if err != nil {
			return 0, false, err
		}
		if err := readPositions(ctx, raw, data.file.FilePath(), hit); err != nil {
			return 0, false, catalog.Errorf(catalog.KindUnavailable, "position delete file %s is damaged", del.file.FilePath()).Because(err)
		}
	}
	if !hit.IsEmpty() && hit.Maximum() >= uint64(max(data.file.Count(), 0)) {
		return 0, false, nil
	}
	return int64(hit.GetCardinality()), true, nil
}

// readPositions adds the positions that a Parquet position delete file holds for path.
func readPositions(ctx context.Context, raw []byte, path string, hit *roaring64.Bitmap) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoder: %v", p)
		}
	}()
	pf, err := file.NewParquetReader(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	defer pf.Close()
	reader, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: 1 << 16}, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	paths, positions := -1, -1
	for i := range pf.MetaData().Schema.NumColumns() {
		switch pf.MetaData().Schema.Column(i).SchemaNode().FieldID() {
		case filePathFieldID:
			paths = i
		case positionFieldID:
			positions = i
		}
	}
	if paths < 0 || positions < 0 {
		return errors.New("columns file_path and pos are missing")
	}
	rec, err := reader.GetRecordReader(ctx, []int{paths, positions}, nil)
	if err != nil {
		return err
	}
	defer rec.Release()
	for rec.Next() {
		if err := addPositions(rec.RecordBatch(), path, hit); err != nil {
			return err
		}
	}
	return rec.Err()
}

func addPositions(batch arrow.RecordBatch, path string, hit *roaring64.Bitmap) error {
	var names interface{ Value(int) string }
	var positions *array.Int64
	for i := range int(batch.NumCols()) {
		switch col := batch.Column(i).(type) {
		case *array.String:
			names = col
		case *array.LargeString:
			names = col
		case *array.Int64:
			positions = col
		}
	}
	if names == nil || positions == nil {
		return errors.New("columns file_path and pos have other types than string and long")
	}
	for i := range int(batch.NumRows()) {
		if names.Value(i) != path {
			continue
		}
		if positions.Value(i) < 0 {
			return fmt.Errorf("position %d is negative", positions.Value(i))
		}
		hit.Add(uint64(positions.Value(i)))
	}
	return nil
}
