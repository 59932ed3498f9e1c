package catalog

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// WarehouseSettings is all that is known about a warehouse.
type WarehouseSettings struct {
	Warehouse
	Default bool
	// SoftDelete is how long a dropped object can come back; 0: not at all.
	SoftDelete time.Duration
	Protected  bool // it cannot be deleted
	CreatedAt  time.Time
}

// WarehouseUpdate changes settings; nil members stay as they are.
type WarehouseUpdate struct {
	Location   *string // of an empty warehouse only
	Default    bool    // makes it the default one; there is always one
	SoftDelete *time.Duration
	Protected  *bool
}

// WarehouseStore keeps warehouses; package catalog/postgres implements it.
type WarehouseStore interface {
	// Warehouses lists all, by name.
	Warehouses(ctx context.Context) ([]WarehouseSettings, error)
	// WarehouseSettings returns one; the empty name means the default one.
	// KindNoSuchWarehouse.
	WarehouseSettings(ctx context.Context, name string) (WarehouseSettings, error)
	// CreateWarehouse fails with KindAlreadyExists, and with KindConflict if its location
	// overlaps another one's. The first warehouse becomes the default one.
	CreateWarehouse(ctx context.Context, w WarehouseSettings) error
	// UpdateWarehouse fails with KindNoSuchWarehouse, and with KindConflict for a location
	// that overlaps another one's or of a warehouse that is in use.
	UpdateWarehouse(ctx context.Context, name string, u WarehouseUpdate) error
	// DeleteWarehouse fails with KindNoSuchWarehouse, and with KindConflict unless it is
	// empty, not protected, and not the default one.
	DeleteWarehouse(ctx context.Context, name string) error
}

// Locations knows where this server may write; package catalog/storage implements it.
type Locations interface {
	// Allowed returns KindInvalid for a location that files may not be written below.
	Allowed(location string) error
}

// Warehouses manages warehouses.
type Warehouses struct {
	store     WarehouseStore
	locations Locations
	base      string
}

// NewWarehouses returns a Warehouses. A warehouse that is created without a location gets
// one below base; if base is empty, a location must be given.
func NewWarehouses(store WarehouseStore, locations Locations, base string) *Warehouses {
	return &Warehouses{store: store, locations: locations, base: strings.TrimRight(base, "/")}
}

// MaxSoftDelete bounds how long a dropped object is kept.
const MaxSoftDelete = 10 * 365 * 24 * time.Hour

// reservedWarehouse is a name that the paths of catalogd's own operations need.
const reservedWarehouse = "warehouses"

// CheckWarehouseName returns KindInvalid for a name that no URL could hold.
func CheckWarehouseName(name string) error {
	bad := func(why string) error {
		return Errorf(KindInvalid, "Invalid warehouse name %q: it %s", name, why)
	}
	switch {
	case name == "":
		return bad("is empty")
	case name == reservedWarehouse, name == ".", name == "..":
		return bad("is reserved")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return bad("holds a control character or invalid UTF-8")
	case strings.ContainsAny(name, "/%?#\\"):
		return bad(`holds one of / % ? # \`)
	case utf8.RuneCountInString(name) > maxName:
		return bad("is longer than 255 characters")
	}
	return nil
}

// List lists all warehouses, by name.
func (w *Warehouses) List(ctx context.Context) ([]WarehouseSettings, error) {
	return w.store.Warehouses(ctx)
}

// Get returns a warehouse; the empty name means the default one.
func (w *Warehouses) Get(ctx context.Context, name string) (WarehouseSettings, error) {
	return w.store.WarehouseSettings(ctx, name)
}

// Create makes a warehouse and returns it.
func (w *Warehouses) Create(ctx context.Context, s WarehouseSettings) (WarehouseSettings, error) {
	if err := CheckWarehouseName(s.Name); err != nil {
		return WarehouseSettings{}, err
	}
	if s.Location == "" {
		if w.base == "" {
			return WarehouseSettings{}, Errorf(KindInvalid, "The location of warehouse %s is missing: give one that this server may write below (--allow-location)", s.Name)
		}
		s.Location = w.base + "/" + pathSegment(s.Name)
	}
	var err error
	if s.Location, err = w.location(s.Location); err != nil {
		return WarehouseSettings{}, err
	}
	if err := checkSoftDelete(s.SoftDelete); err != nil {
		return WarehouseSettings{}, err
	}
	if err := w.store.CreateWarehouse(ctx, s); err != nil {
		return WarehouseSettings{}, err
	}
	return w.store.WarehouseSettings(ctx, s.Name)
}

// Update changes settings and returns all of them.
func (w *Warehouses) Update(ctx context.Context, name string, u WarehouseUpdate) (WarehouseSettings, error) {
	if u.Location != nil {
		location, err := w.location(*u.Location)
		if err != nil {
			return WarehouseSettings{}, err
		}
		u.Location = &location
	}
	if u.SoftDelete != nil {
		if err := checkSoftDelete(*u.SoftDelete); err != nil {
			return WarehouseSettings{}, err
		}
	}
	if err := w.store.UpdateWarehouse(ctx, name, u); err != nil {
		return WarehouseSettings{}, err
	}
	return w.store.WarehouseSettings(ctx, name)
}

// Delete removes an empty warehouse.
func (w *Warehouses) Delete(ctx context.Context, name string) error {
	return w.store.DeleteWarehouse(ctx, name)
}

// location makes a URI of a plain path, since clients read table locations elsewhere.
func (w *Warehouses) location(location string) (string, error) {
	location = strings.TrimRight(location, "/")
	if strings.HasPrefix(location, "/") {
		location = "file://" + location
	}
	return location, w.locations.Allowed(location)
}

func checkSoftDelete(d time.Duration) error {
	if d < 0 || d > MaxSoftDelete {
		return Errorf(KindInvalid, "The soft-delete retention %s is not between 0 and %s", d, MaxSoftDelete)
	}
	return nil
}
