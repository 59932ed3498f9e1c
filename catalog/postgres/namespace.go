package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

// namespaceSQL tells apart a missing warehouse, a missing namespace and an empty one. A
// namespace exists through its own rows, its tables, or a namespace below it ('/' follows
// '.' in "C" order). The row "exists" is what PyIceberg writes for a namespace without
// properties, Java for every one, and so do we; it is never shown.
const namespaceSQL = `
SELECT EXISTS (SELECT FROM iceberg_namespace_properties p WHERE p.catalog_name = w.name AND p.namespace = $2)
    OR EXISTS (SELECT FROM iceberg_tables t WHERE t.catalog_name = w.name AND t.table_namespace = $2)
    OR EXISTS (SELECT FROM iceberg_namespace_properties p WHERE p.catalog_name = w.name
                  AND p.namespace >= $2 || '.' AND p.namespace < $2 || '/')
    OR EXISTS (SELECT FROM iceberg_tables t WHERE t.catalog_name = w.name
                  AND t.table_namespace >= $2 || '.' AND t.table_namespace < $2 || '/'),
       (SELECT jsonb_object_agg(property_key, property_value) FROM iceberg_namespace_properties p
         WHERE p.catalog_name = w.name AND p.namespace = $2 AND p.property_key <> 'exists' AND p.property_value IS NOT NULL)
  FROM warehouse w
 WHERE w.name = $1`

// queryer is a pool or a transaction.
type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Namespace implements [catalog.Reader].
func (s *Store) Namespace(ctx context.Context, warehouse string, ns catalog.Namespace) (map[string]string, error) {
	var props map[string]string
	err := s.read(ctx, func(ctx context.Context) (err error) {
		props, err = namespaceProperties(ctx, s.pool, warehouse, ns)
		return err
	})
	return props, translate(err)
}

func namespaceProperties(ctx context.Context, q queryer, warehouse string, ns catalog.Namespace) (map[string]string, error) {
	var (
		exists bool
		props  map[string]string
	)
	err := q.QueryRow(ctx, namespaceSQL, warehouse, catalog.EncodeNamespace(ns)).Scan(&exists, &props)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, noWarehouse(warehouse)
	case err != nil:
		return nil, err
	case !exists:
		return nil, noNamespace(ns)
	case props == nil:
		props = map[string]string{}
	}
	return props, nil
}

// listNamespacesSQL gives the next level below a prefix; $3 is the end of its key range.
const listNamespacesSQL = `
SELECT DISTINCT child FROM (
    SELECT split_part(substr(namespace, length($2) + 1), '.', 1) COLLATE "C" AS child
      FROM iceberg_namespace_properties
     WHERE catalog_name = $1 AND namespace >= $2 AND namespace < $3
    UNION
    SELECT split_part(substr(table_namespace, length($2) + 1), '.', 1) COLLATE "C"
      FROM iceberg_tables
     WHERE catalog_name = $1 AND table_namespace >= $2 AND table_namespace < $3
) AS below
 WHERE child <> '' AND child > $4
 ORDER BY child LIMIT $5`

// afterEverything is greater than every string that a name can hold, in "C" order.
const afterEverything = "\U0010FFFF"

// ListNamespaces implements [catalog.Reader].
func (s *Store) ListNamespaces(ctx context.Context, warehouse string, parent catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.Namespace], error) {
	var page catalog.Page[catalog.Namespace]
	prefix, end := "", afterEverything
	if len(parent) > 0 {
		if _, err := s.Namespace(ctx, warehouse, parent); err != nil {
			return page, err
		}
		encoded := catalog.EncodeNamespace(parent)
		prefix, end = encoded+".", encoded+"/"
	} else if _, err := s.Warehouse(ctx, warehouse); err != nil {
		return page, err
	}
	names, next, err := s.page(ctx, p, listNamespacesSQL, warehouse, prefix, end)
	if err != nil {
		return page, err
	}
	page.Next = next
	page.Items = make([]catalog.Namespace, len(names))
	for i, name := range names {
		page.Items[i] = append(append(catalog.Namespace{}, parent...), catalog.DecodeNamespace(name)...)
	}
	return page, nil
}

// page runs a listing whose last two arguments are the token and a limit, and asks for
// one row more than the page holds to know whether there is a next one.
func (s *Store) page(ctx context.Context, p catalog.PageRequest, sql string, args ...any) (names []string, next string, err error) {
	var limit any
	if p.Size > 0 {
		limit = p.Size + 1
	}
	err = s.read(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, append(slices.Clone(args), p.After, limit)...)
		if err == nil {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if err != nil {
		return nil, "", translate(err)
	}
	if p.Size > 0 && len(names) > p.Size {
		names = names[:p.Size]
		next = names[p.Size-1]
	}
	return names, next, nil
}

const listSQL = `
SELECT table_name FROM iceberg_tables
 WHERE catalog_name = $1 AND table_namespace = $2 AND table_name > $5
   AND coalesce(iceberg_type, 'TABLE') = $3 AND ($4 OR storage_of IS NULL)
 ORDER BY table_name LIMIT $6`

// List implements [catalog.Reader].
func (s *Store) List(ctx context.Context, warehouse string, ns catalog.Namespace, typ catalog.ObjectType, p catalog.PageRequest) (catalog.Page[string], error) {
	if _, err := s.Namespace(ctx, warehouse, ns); err != nil {
		return catalog.Page[string]{}, err
	}
	names, next, err := s.page(ctx, p, listSQL, warehouse, catalog.EncodeNamespace(ns), string(typ), p.StorageTables)
	return catalog.Page[string]{Items: names, Next: next}, err
}

const insertPropertiesSQL = `
INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
SELECT $1, $2, k, v FROM unnest($3::text[], $4::text[]) AS p (k, v)
    ON CONFLICT (catalog_name, namespace, property_key) DO UPDATE SET property_value = excluded.property_value`

const claimNamespaceSQL = `
INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
VALUES ($1, $2, 'exists', 'true')
    ON CONFLICT DO NOTHING`

// CreateNamespace implements [catalog.Store].
func (s *Store) CreateNamespace(ctx context.Context, warehouse string, ns catalog.Namespace, props map[string]string) error {
	return s.update(ctx, warehouse, func(ctx context.Context, tx pgx.Tx) error {
		// Holds the warehouse, so that it is not deleted at the same time.
		if _, err := tx.Exec(ctx, `SELECT FROM warehouse WHERE name = $1 FOR KEY SHARE`, warehouse); err != nil {
			return err
		}
		_, err := namespaceProperties(ctx, tx, warehouse, ns)
		if err == nil {
			return namespaceTaken(ns)
		}
		if catalog.KindOf(err) != catalog.KindNoSuchNamespace {
			return err
		}
		for depth := 1; depth < len(ns); depth++ {
			if _, err := tx.Exec(ctx, claimNamespaceSQL, warehouse, catalog.EncodeNamespace(ns[:depth])); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, claimNamespaceSQL, warehouse, catalog.EncodeNamespace(ns))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return namespaceTaken(ns) // another process was faster
		}
		return setProperties(ctx, tx, warehouse, ns, props)
	})
}

func namespaceTaken(ns catalog.Namespace) error {
	return catalog.Errorf(catalog.KindAlreadyExists, "Namespace already exists: %s", ns)
}

func setProperties(ctx context.Context, tx pgx.Tx, warehouse string, ns catalog.Namespace, props map[string]string) error {
	if len(props) == 0 {
		return nil
	}
	keys, values := make([]string, 0, len(props)), make([]string, 0, len(props))
	for k, v := range props {
		keys, values = append(keys, k), append(values, v)
	}
	_, err := tx.Exec(ctx, insertPropertiesSQL, warehouse, catalog.EncodeNamespace(ns), keys, values)
	return err
}

// UpdateNamespace implements [catalog.Store].
func (s *Store) UpdateNamespace(ctx context.Context, warehouse string, ns catalog.Namespace, remove []string, set map[string]string) (missing []string, err error) {
	err = s.update(ctx, warehouse, func(ctx context.Context, tx pgx.Tx) error {
		missing = nil // fn may run again
		if err := lockNamespace(ctx, tx, warehouse, ns); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `DELETE FROM iceberg_namespace_properties
			WHERE catalog_name = $1 AND namespace = $2 AND property_key = ANY($3) AND property_key <> 'exists'
			RETURNING property_key`, warehouse, catalog.EncodeNamespace(ns), remove)
		if err != nil {
			return err
		}
		removed, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		gone := make(map[string]bool, len(removed))
		for _, k := range removed {
			gone[k] = true
		}
		for _, k := range remove {
			if !gone[k] {
				missing = append(missing, k)
			}
		}
		// Removing the last property must not remove a namespace that another
		// implementation made without the marker row.
		if _, err := tx.Exec(ctx, claimNamespaceSQL, warehouse, catalog.EncodeNamespace(ns)); err != nil {
			return err
		}
		if r := pending(ctx); r != nil {
			if r.Outcome.Detail, err = json.Marshal(missing); err != nil {
				return err
			}
		}
		return setProperties(ctx, tx, warehouse, ns, set)
	})
	return missing, err
}

// lockNamespace checks that ns exists and keeps others from dropping or changing it.
func lockNamespace(ctx context.Context, tx pgx.Tx, warehouse string, ns catalog.Namespace) error {
	if _, err := tx.Exec(ctx, `SELECT FROM iceberg_namespace_properties
		WHERE catalog_name = $1 AND namespace = $2 ORDER BY property_key FOR UPDATE`, warehouse, catalog.EncodeNamespace(ns)); err != nil {
		return err
	}
	_, err := namespaceProperties(ctx, tx, warehouse, ns)
	return err
}

// contentSQL counts what keeps a namespace from being dropped. Storage tables do not: the
// view that owns one does.
const contentSQL = `
SELECT (SELECT count(*) FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 AND storage_of IS NULL)
     + (SELECT count(*) FROM iceberg_function WHERE catalog_name = $1 AND namespace = $2),
       EXISTS (SELECT FROM iceberg_tables WHERE catalog_name = $1
                  AND table_namespace >= $2 || '.' AND table_namespace < $2 || '/')
    OR EXISTS (SELECT FROM iceberg_namespace_properties WHERE catalog_name = $1
                  AND namespace >= $2 || '.' AND namespace < $2 || '/')`

// DropNamespace implements [catalog.Store].
func (s *Store) DropNamespace(ctx context.Context, warehouse string, ns catalog.Namespace) error {
	return s.update(ctx, warehouse, func(ctx context.Context, tx pgx.Tx) error {
		if err := lockNamespace(ctx, tx, warehouse, ns); err != nil {
			return err
		}
		if err := refuseProtected(ctx, tx, warehouse, ns); err != nil {
			return err
		}
		var (
			objects int
			below   bool
		)
		encoded := catalog.EncodeNamespace(ns)
		if err := tx.QueryRow(ctx, contentSQL, warehouse, encoded).Scan(&objects, &below); err != nil {
			return err
		}
		switch {
		case objects > 0:
			return catalog.Errorf(catalog.KindNamespaceNotEmpty, "Namespace %s is not empty. %d tables, views and functions exist.", ns, objects)
		case below:
			return catalog.Errorf(catalog.KindNamespaceNotEmpty, "Namespace %s is not empty. It contains namespaces.", ns)
		}
		_, err := tx.Exec(ctx, `DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2`, warehouse, encoded)
		return err
	})
}
