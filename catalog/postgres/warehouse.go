package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/catalogd/catalogd/catalog"
)

const warehouseColumns = `SELECT name, location, is_default, soft_delete_ms, protected, created_at FROM warehouse`

func scanWarehouse(row pgx.CollectableRow) (catalog.WarehouseSettings, error) {
	var (
		w  catalog.WarehouseSettings
		ms int64
	)
	err := row.Scan(&w.Name, &w.Location, &w.Default, &ms, &w.Protected, &w.CreatedAt)
	w.SoftDelete = time.Duration(ms) * time.Millisecond
	return w, err
}

// Warehouses implements [catalog.WarehouseStore].
func (s *Store) Warehouses(ctx context.Context) ([]catalog.WarehouseSettings, error) {
	rows, err := s.pool.Query(ctx, warehouseColumns+` ORDER BY name`)
	if err != nil {
		return nil, translate(err)
	}
	all, err := pgx.CollectRows(rows, scanWarehouse)
	return all, translate(err)
}

// WarehouseSettings implements [catalog.WarehouseStore].
func (s *Store) WarehouseSettings(ctx context.Context, name string) (catalog.WarehouseSettings, error) {
	w, err := s.Warehouse(ctx, name)
	if err != nil {
		return catalog.WarehouseSettings{}, err
	}
	rows, err := s.pool.Query(ctx, warehouseColumns+` WHERE name = $1`, w.Name)
	if err != nil {
		return catalog.WarehouseSettings{}, translate(err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, scanWarehouse)
	if errors.Is(err, pgx.ErrNoRows) {
		return found, noWarehouse(name)
	}
	return found, translate(err)
}

// lockWarehouses makes those who change the set of warehouses, or their locations, wait
// for each other. There are few, and they rarely change.
const lockWarehouses = `SELECT pg_advisory_xact_lock(hashtextextended('catalogd warehouses', 7))`

// CreateWarehouse implements [catalog.WarehouseStore].
func (s *Store) CreateWarehouse(ctx context.Context, w catalog.WarehouseSettings) error {
	return s.update(ctx, "", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockWarehouses); err != nil {
			return err
		}
		if err := overlapping(ctx, tx, w.Name, w.Location); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO warehouse (name, location, is_default, soft_delete_ms, protected)
			VALUES ($1, $2, NOT EXISTS (SELECT FROM warehouse WHERE is_default), $3, $4) ON CONFLICT (name) DO NOTHING`,
			w.Name, w.Location, w.SoftDelete.Milliseconds(), w.Protected)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return catalog.Errorf(catalog.KindAlreadyExists, "Warehouse already exists: %s", w.Name)
		}
		if w.Default {
			return makeDefault(ctx, tx, w.Name)
		}
		return nil
	})
}

// overlapping refuses a location inside or around another warehouse's.
func overlapping(ctx context.Context, tx pgx.Tx, name, location string) error {
	rows, err := tx.Query(ctx, `SELECT name, location FROM warehouse WHERE name <> $1 ORDER BY name`, name)
	if err != nil {
		return err
	}
	others, err := pgx.CollectRows(rows, pgx.RowToStructByPos[catalog.Warehouse])
	if err != nil {
		return err
	}
	folder := func(location string) string { return strings.TrimRight(catalog.LocationKey(location), "/") + "/" }
	key := folder(location)
	for _, o := range others {
		other := folder(o.Location)
		if strings.HasPrefix(key, other) || strings.HasPrefix(other, key) {
			return catalog.Errorf(catalog.KindConflict, "Location %s overlaps that of warehouse %s, which is %s: choose another one", location, o.Name, o.Location)
		}
	}
	return nil
}

func makeDefault(ctx context.Context, tx pgx.Tx, name string) error {
	if _, err := tx.Exec(ctx, `UPDATE warehouse SET is_default = false WHERE is_default AND name <> $1`, name); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE warehouse SET is_default = true WHERE name = $1`, name)
	return err
}

// EnsureWarehouse creates a warehouse unless it exists. An existing one with another
// location is KindConflict: tables already live there. Its other settings stay as they
// are.
func (s *Store) EnsureWarehouse(ctx context.Context, w catalog.Warehouse) error {
	return s.EnsureWarehouseWith(ctx, catalog.WarehouseSettings{Warehouse: w})
}

// EnsureWarehouseWith is EnsureWarehouse with the settings that a new one gets.
func (s *Store) EnsureWarehouseWith(ctx context.Context, w catalog.WarehouseSettings) error {
	have, err := s.Warehouse(ctx, w.Name)
	if catalog.KindOf(err) == catalog.KindNoSuchWarehouse {
		err = s.CreateWarehouse(ctx, w)
		if catalog.KindOf(err) != catalog.KindAlreadyExists {
			return err
		}
		have, err = s.Warehouse(ctx, w.Name) // another process was faster
	}
	if err != nil {
		return err
	}
	if have.Location != w.Location {
		return catalog.Errorf(catalog.KindConflict, "warehouse %s is at %s already, not at %s: use that location or another name", w.Name, have.Location, w.Location)
	}
	return nil
}

// UpdateWarehouse implements [catalog.WarehouseStore].
func (s *Store) UpdateWarehouse(ctx context.Context, name string, u catalog.WarehouseUpdate) error {
	return s.update(ctx, "", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockWarehouses); err != nil {
			return err
		}
		if u.Location != nil {
			if err := overlapping(ctx, tx, name, *u.Location); err != nil {
				return err
			}
		}
		old, err := lockWarehouse(ctx, tx, name)
		if err != nil {
			return err
		}
		if u.Location != nil && *u.Location != old.Location {
			if err := unused(ctx, tx, name, "its location cannot be changed"); err != nil {
				return err
			}
		}
		var ms *int64
		if u.SoftDelete != nil {
			n := u.SoftDelete.Milliseconds()
			ms = &n
		}
		if _, err := tx.Exec(ctx, `UPDATE warehouse SET location = coalesce($2, location), soft_delete_ms = coalesce($3, soft_delete_ms),
			protected = coalesce($4, protected) WHERE name = $1`, name, u.Location, ms, u.Protected); err != nil {
			return err
		}
		if u.Default {
			return makeDefault(ctx, tx, name)
		}
		return nil
	})
}

func lockWarehouse(ctx context.Context, tx pgx.Tx, name string) (catalog.WarehouseSettings, error) {
	rows, err := tx.Query(ctx, warehouseColumns+` WHERE name = $1 FOR UPDATE`, name)
	if err != nil {
		return catalog.WarehouseSettings{}, err
	}
	w, err := pgx.CollectExactlyOneRow(rows, scanWarehouse)
	if errors.Is(err, pgx.ErrNoRows) {
		return w, noWarehouse(name)
	}
	return w, err
}

// unused refuses to go on if a warehouse holds anything, dropped objects included.
func unused(ctx context.Context, tx pgx.Tx, name, what string) error {
	var objects, dropped, namespaces int
	err := tx.QueryRow(ctx, `
SELECT (SELECT count(*) FROM iceberg_tables WHERE catalog_name = $1),
       (SELECT count(*) FROM dropped_object WHERE catalog_name = $1 AND (purge OR expires_at > clock_timestamp())),
       (SELECT count(DISTINCT namespace) FROM iceberg_namespace_properties WHERE catalog_name = $1)`, name).
		Scan(&objects, &dropped, &namespaces)
	if err == nil && objects+dropped+namespaces > 0 {
		return catalog.Errorf(catalog.KindConflict, "Warehouse %s is not empty, %s: it holds %d namespaces, %d tables and views, and %d dropped ones that are kept",
			name, what, namespaces, objects, dropped)
	}
	return err
}

// DeleteWarehouse implements [catalog.WarehouseStore].
func (s *Store) DeleteWarehouse(ctx context.Context, name string) error {
	return s.update(ctx, "", func(ctx context.Context, tx pgx.Tx) error {
		w, err := lockWarehouse(ctx, tx, name)
		if err != nil {
			return err
		}
		switch {
		case w.Protected:
			return catalog.Errorf(catalog.KindConflict, "Warehouse %s is protected and cannot be deleted: lift that with `catalogd warehouse set %s --protected=false`", name, name)
		case w.Default:
			return catalog.Errorf(catalog.KindConflict, "Warehouse %s is the default one and cannot be deleted: make another one the default first with `catalogd warehouse set NAME --default`", name)
		}
		if err := unused(ctx, tx, name, "so it cannot be deleted"); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM warehouse WHERE name = $1`, name)
		return err
	})
}
