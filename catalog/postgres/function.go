package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

const listFunctionsSQL = `
SELECT name FROM iceberg_function
 WHERE catalog_name = $1 AND namespace = $2 AND name > $3
 ORDER BY name LIMIT $4`

// ListFunctions implements [catalog.FunctionStore].
func (s *Store) ListFunctions(ctx context.Context, warehouse string, ns catalog.Namespace, p catalog.PageRequest) (catalog.Page[string], error) {
	if _, err := s.Namespace(ctx, warehouse, ns); err != nil {
		return catalog.Page[string]{}, err
	}
	names, next, err := s.page(ctx, p, listFunctionsSQL, warehouse, catalog.EncodeNamespace(ns))
	return catalog.Page[string]{Items: names, Next: next}, err
}

// Function implements [catalog.FunctionStore].
func (s *Store) Function(ctx context.Context, warehouse string, id catalog.TableIdent) (json.RawMessage, error) {
	var metadata string
	err := s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT metadata FROM iceberg_function
			WHERE catalog_name = $1 AND namespace = $2 AND name = $3`, warehouse, catalog.EncodeNamespace(id.Namespace), id.Name).Scan(&metadata)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err := s.Namespace(ctx, warehouse, id.Namespace); err != nil {
			return nil, err
		}
		return nil, noFunction(id)
	}
	return json.RawMessage(metadata), translate(err)
}

func noFunction(id catalog.TableIdent) error {
	return catalog.Errorf(catalog.KindNoSuchFunction, "Function does not exist: %s", id)
}

// PutFunction implements [catalog.FunctionStore].
func (s *Store) PutFunction(ctx context.Context, warehouse string, id catalog.TableIdent, metadata json.RawMessage) error {
	return s.update(ctx, warehouse, func(ctx context.Context, tx pgx.Tx) error {
		if err := lockNamespace(ctx, tx, warehouse, id.Namespace); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO iceberg_function (catalog_name, namespace, name, metadata) VALUES ($1, $2, $3, $4)
			ON CONFLICT (catalog_name, namespace, name) DO UPDATE SET metadata = excluded.metadata, changed_at = clock_timestamp()`,
			warehouse, catalog.EncodeNamespace(id.Namespace), id.Name, string(metadata))
		return err
	})
}

// DropFunction implements [catalog.FunctionStore].
func (s *Store) DropFunction(ctx context.Context, warehouse string, id catalog.TableIdent) error {
	return s.update(ctx, warehouse, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM iceberg_function WHERE catalog_name = $1 AND namespace = $2 AND name = $3`,
			warehouse, catalog.EncodeNamespace(id.Namespace), id.Name)
		if err == nil && tag.RowsAffected() == 0 {
			return noFunction(id)
		}
		return err
	})
}
