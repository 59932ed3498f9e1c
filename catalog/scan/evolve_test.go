package scan_test

import (
	"context"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

func renameV(_ context.Context, tx *table.Transaction) error {
	return tx.UpdateSchema(true, false).RenameColumn([]string{"v"}, "w").Commit()
}

func addBucket(_ context.Context, tx *table.Transaction) error {
	return tx.UpdateSpec(true).AddField("id", iceberg.BucketTransform{NumBuckets: 4}, "bucket").Commit()
}

func removeBucket(_ context.Context, tx *table.Transaction) error {
	return tx.UpdateSpec(true).RemoveField("bucket").Commit()
}
