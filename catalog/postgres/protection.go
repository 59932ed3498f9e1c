package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

const protectedSQL = `
SELECT protected FROM iceberg_tables
 WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND coalesce(iceberg_type, 'TABLE') = $4`

const protectedNamespaceSQL = `
SELECT EXISTS (SELECT FROM protected_namespace WHERE catalog_name = $1 AND namespace = $2)`

// Protected implements [catalog.Life].
func (s *Store) Protected(ctx context.Context, warehouse string, target catalog.Target) (protected bool, err error) {
	w, err := s.Warehouse(ctx, warehouse)
	if err != nil {
		return false, err
	}
	ns := catalog.EncodeNamespace(target.Ident.Namespace)
	if target.Type == catalog.TypeNamespace {
		if _, err := s.Namespace(ctx, w.Name, target.Ident.Namespace); err != nil {
			return false, err
		}
		err = s.pool.QueryRow(ctx, protectedNamespaceSQL, w.Name, ns).Scan(&protected)
		return protected, translate(err)
	}
	err = s.pool.QueryRow(ctx, protectedSQL, w.Name, ns, target.Ident.Name, string(target.Type)).Scan(&protected)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, missing(target.Type, target.Ident)
	}
	return protected, translate(err)
}

const setProtectedSQL = `
UPDATE iceberg_tables SET protected = $5
 WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND coalesce(iceberg_type, 'TABLE') = $4`

// SetProtected implements [catalog.Life].
func (s *Store) SetProtected(ctx context.Context, warehouse string, target catalog.Target, protected bool) error {
	w, err := s.Warehouse(ctx, warehouse)
	if err != nil {
		return err
	}
	ns := catalog.EncodeNamespace(target.Ident.Namespace)
	return s.update(ctx, w.Name, func(ctx context.Context, tx pgx.Tx) error {
		if target.Type == catalog.TypeNamespace {
			return protectNamespace(ctx, tx, w.Name, target.Ident.Namespace, protected)
		}
		tag, err := tx.Exec(ctx, setProtectedSQL, w.Name, ns, target.Ident.Name, string(target.Type), protected)
		if err == nil && tag.RowsAffected() == 0 {
			return missing(target.Type, target.Ident)
		}
		return err
	})
}

// protectNamespace holds the namespace, so that it is not dropped at the same time.
func protectNamespace(ctx context.Context, tx pgx.Tx, warehouse string, ns catalog.Namespace, protected bool) error {
	if err := lockNamespace(ctx, tx, warehouse, ns); err != nil {
		return err
	}
	sql := `DELETE FROM protected_namespace WHERE catalog_name = $1 AND namespace = $2`
	if protected {
		// A namespace that exists through its tables only gets a row that can be locked.
		if _, err := tx.Exec(ctx, claimNamespaceSQL, warehouse, catalog.EncodeNamespace(ns)); err != nil {
			return err
		}
		sql = `INSERT INTO protected_namespace (catalog_name, namespace) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	}
	_, err := tx.Exec(ctx, sql, warehouse, catalog.EncodeNamespace(ns))
	return err
}

// refuseProtected keeps a protected namespace from being dropped. The caller holds it.
func refuseProtected(ctx context.Context, tx pgx.Tx, warehouse string, ns catalog.Namespace) error {
	var protected bool
	err := tx.QueryRow(ctx, protectedNamespaceSQL, warehouse, catalog.EncodeNamespace(ns)).Scan(&protected)
	if err == nil && protected {
		return catalog.ErrProtected(catalog.Target{Type: catalog.TypeNamespace, Ident: catalog.TableIdent{Namespace: ns}})
	}
	return err
}
