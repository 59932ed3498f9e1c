package duckdb

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet/file"
)

// findNanos looks for zoned timestamps that are finer than a microsecond. DuckDB has no
// type for them and read_parquet cuts them silently, so the stored integers are read
// here. Columns without such values are exact in DuckDB.
func findNanos(path string, cols []*column) (found map[int]bool, err error) {
	suspects := make(map[int][]int)
	for i, c := range cols {
		if leaves := nanoLeaves(c); len(leaves) > 0 {
			suspects[i] = leaves
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := r.Close(); err == nil {
			err = cerr
		}
	}()
	found = make(map[int]bool)
	for i, leaves := range suspects {
		for _, leaf := range leaves {
			fine, err := anyBelowMicros(r, leaf)
			if err != nil {
				return nil, err
			}
			found[i] = found[i] || fine
		}
	}
	return found, nil
}

func nanoLeaves(c *column) []int {
	if c.shape == shapeLeaf {
		if c.nanosUTC {
			return []int{c.leaf}
		}
		return nil
	}
	var out []int
	for _, child := range c.children {
		out = append(out, nanoLeaves(child)...)
	}
	return out
}

func anyBelowMicros(r *file.Reader, leaf int) (bool, error) {
	const batch = 4096
	values, defs, reps := make([]int64, batch), make([]int16, batch), make([]int16, batch)
	for rg := range r.NumRowGroups() {
		chunk, err := r.RowGroup(rg).Column(leaf)
		if err != nil {
			return false, err
		}
		ints, ok := chunk.(*file.Int64ColumnChunkReader)
		if !ok {
			return false, fmt.Errorf("column chunk %d holds %s, not INT64", leaf, chunk.Type())
		}
		for ints.HasNext() {
			_, n, err := ints.ReadBatch(batch, values, defs, reps)
			if err != nil {
				return false, err
			}
			for _, v := range values[:n] {
				if v%1000 != 0 {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
