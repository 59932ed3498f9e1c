package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/catalogd/catalogd/catalog"
)

const receiptSQL = `
INSERT INTO idempotency_record (catalog_name, idempotency_key, request_digest, metadata_location, detail, failure, message)
VALUES ($1, $2, $3, $4, $5, $6, $7)`

func receiptArgs(warehouse string, r *catalog.Receipt) []any {
	args := []any{warehouse, r.Key, r.Digest[:], null(r.Outcome.MetadataLocation), null(string(r.Outcome.Detail)), nil, nil}
	if e := r.Outcome.Err; e != nil {
		args[5], args[6] = e.Kind.FinalName(), e.Msg
	}
	return args
}

// pending is the receipt that a transaction under ctx has to write, nil if there is none.
func pending(ctx context.Context) *catalog.Receipt {
	if r := catalog.ReceiptOf(ctx); r != nil && !r.Stored {
		return r
	}
	return nil
}

// repeated translates the failure to write a receipt a second time. A copy of the request
// that is still at work is waited for by the unique index.
func repeated(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == uniqueViolation && e.TableName == "idempotency_record" {
		return catalog.ErrRepeated
	}
	return err
}

// Recall implements [catalog.Receipts].
func (s *Store) Recall(ctx context.Context, warehouse string, r *catalog.Receipt) (o catalog.Outcome, found bool, err error) {
	var (
		digest                             []byte
		location, detail, failure, message *string
	)
	err = s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT request_digest, metadata_location, detail, failure, message
			FROM idempotency_record WHERE catalog_name = $1 AND idempotency_key = $2`, warehouse, r.Key).
			Scan(&digest, &location, &detail, &failure, &message)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return o, false, nil
	}
	if err != nil {
		return o, false, translate(err)
	}
	if string(digest) != string(r.Digest[:]) {
		return o, false, catalog.Errorf(catalog.KindInvalid, "Idempotency-Key %s belongs to another request: make a new key for each change", r.Key)
	}
	if location != nil {
		o.MetadataLocation = *location
	}
	if detail != nil {
		o.Detail = json.RawMessage(*detail)
	}
	if failure != nil {
		o.Err = catalog.Errorf(catalog.FinalKind(*failure), "%s", *message)
	}
	return o, true, nil
}

// Remember implements [catalog.Receipts].
func (s *Store) Remember(ctx context.Context, warehouse string, r *catalog.Receipt) error {
	ctx, leave, err := s.admit(ctx)
	if err != nil {
		return err
	}
	defer leave()
	_, err = s.pool.Exec(ctx, receiptSQL, receiptArgs(warehouse, r)...)
	if err = repeated(err); errors.Is(err, catalog.ErrRepeated) {
		return err
	}
	if err == nil {
		r.Stored = true
	}
	return translate(err)
}
