package publish

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/catalogd/catalogd/mv"
)

// summary counts what a snapshot did, for its summary.
type summary struct {
	addedFiles, addedRecords, addedBytes             int64
	removedFiles, removedRecords, removedBytes       int64
	removedDeletes, removedPositions, removedEqualed int64
	partitions                                       int64
}

func (c *change) summary(partitioned bool) summary {
	var s summary
	touched := make(map[string]bool)
	for _, f := range c.added {
		s.addedFiles++
		s.addedRecords += f.Count()
		s.addedBytes += f.FileSizeBytes()
		touched[partitionName(f)] = true
	}
	for _, e := range c.removed {
		f := e.DataFile()
		s.removedBytes += f.FileSizeBytes()
		touched[partitionName(f)] = true
		switch f.ContentType() {
		case iceberg.EntryContentPosDeletes:
			s.removedDeletes++
			s.removedPositions += f.Count()
		case iceberg.EntryContentEqDeletes:
			s.removedDeletes++
			s.removedEqualed += f.Count()
		default:
			s.removedFiles++
			s.removedRecords += f.Count()
		}
	}
	if partitioned {
		s.partitions = int64(len(touched))
	}
	return s
}

// partitionName tells partitions apart; it is never shown.
func partitionName(f iceberg.DataFile) string {
	partition := f.Partition()
	ids := make([]int, 0, len(partition))
	for id := range partition {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var name strings.Builder
	name.WriteString(strconv.Itoa(int(f.SpecID())))
	for _, id := range ids {
		name.WriteString("\x00" + literalText(partition[id]))
	}
	return name.String()
}

// properties adds the totals, which carry on from the parent's. A parent that does not
// say a total leaves it unknown.
func (s summary) properties(parent *table.Snapshot) iceberg.Properties {
	props := iceberg.Properties{}
	for key, n := range map[string]int64{
		"added-data-files": s.addedFiles, "added-records": s.addedRecords, "added-files-size": s.addedBytes,
		"deleted-data-files": s.removedFiles, "deleted-records": s.removedRecords, "removed-files-size": s.removedBytes,
		"removed-delete-files": s.removedDeletes, "removed-position-deletes": s.removedPositions,
		"removed-equality-deletes": s.removedEqualed, "changed-partition-count": s.partitions,
	} {
		if n > 0 {
			props[key] = strconv.FormatInt(n, 10)
		}
	}
	for key, delta := range map[string]int64{
		"total-data-files":   s.addedFiles - s.removedFiles,
		"total-records":      s.addedRecords - s.removedRecords,
		"total-files-size":   s.addedBytes - s.removedBytes,
		"total-delete-files": -s.removedDeletes, "total-position-deletes": -s.removedPositions, "total-equality-deletes": -s.removedEqualed,
	} {
		if total, ok := parentTotal(parent, key); ok && total+delta >= 0 {
			props[key] = strconv.FormatInt(total+delta, 10)
		}
	}
	return props
}

func parentTotal(parent *table.Snapshot, key string) (int64, bool) {
	if parent == nil {
		return 0, true
	}
	if parent.Summary == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(parent.Summary.Properties[key], 10, 64)
	return n, err == nil
}

// expired picks the snapshots to remove: all but the newest, those that a ref names and
// those that are leased.
func (st *stage) expired(pub mv.Publication) []int64 {
	keep := pub.Keep
	if keep <= 0 {
		keep = DefaultKeep
	}
	spared := make(map[int64]bool)
	for _, id := range pub.Leased {
		spared[id] = true
	}
	for name, ref := range st.meta.Refs() {
		if name != table.MainBranch { // main is about to move on
			spared[ref.SnapshotID] = true
		}
	}
	snapshots := slices.Clone(st.meta.Snapshots())
	slices.SortFunc(snapshots, func(a, b table.Snapshot) int { return cmp.Compare(b.SequenceNumber, a.SequenceNumber) })
	var out []int64
	for _, s := range snapshots[min(keep-1, len(snapshots)):] {
		if !spared[s.SnapshotID] {
			out = append(out, s.SnapshotID)
		}
	}
	return out
}
