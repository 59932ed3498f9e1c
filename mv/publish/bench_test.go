package publish_test

import (
	"fmt"
	"testing"

	"github.com/catalogd/catalogd/mv/changes/tabletest"
)

// BenchmarkReplace publishes one day into storage tables of growing size: manifests read
// and time must follow the change, not the table.
func BenchmarkReplace(b *testing.B) {
	for _, days := range []int64{100, 1000} {
		b.Run(fmt.Sprintf("days=%d", days), func(b *testing.B) {
			s := newBench(b, tabletest.Options{Day: true})
			rows := map[int64][]tabletest.Row{}
			for d := range days {
				rows[d] = rowsOf(d, 0, 1)
			}
			s.refresh(rows)
			read := 0
			for i := int64(1); b.Loop(); i++ {
				read += s.refresh(map[int64][]tabletest.Row{i % days: rowsOf(i%days, i, 1)}).ManifestsIn
			}
			b.ReportMetric(float64(read)/float64(b.N), "manifests/op")
		})
	}
}
