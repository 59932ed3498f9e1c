package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/catalogd/catalogd/api/managerest"
	"github.com/catalogd/catalogd/catalog"
)

// Warehouses is how the handlers manage warehouses. All but List and Create fail with
// KindNoSuchWarehouse.
type Warehouses interface {
	List(ctx context.Context) ([]catalog.WarehouseSettings, error)
	Get(ctx context.Context, name string) (catalog.WarehouseSettings, error)
	// Create fails with KindInvalid, KindAlreadyExists and KindConflict.
	Create(ctx context.Context, w catalog.WarehouseSettings) (catalog.WarehouseSettings, error)
	// Update fails with KindInvalid and KindConflict.
	Update(ctx context.Context, name string, u catalog.WarehouseUpdate) (catalog.WarehouseSettings, error)
	// Delete fails with KindConflict.
	Delete(ctx context.Context, name string) error
}

// Life is how the handlers reach dropped objects, protection and metrics reports.
type Life interface {
	ListDropped(ctx context.Context, warehouse string, p catalog.DroppedPage) (catalog.Page[catalog.Dropped], error)
	// Undrop fails with KindNotFound, KindConflict for a name that does not say which
	// object is meant, KindAlreadyExists, and KindNoSuchNamespace.
	Undrop(ctx context.Context, warehouse string, req catalog.UndropRequest) (catalog.Pointer, error)
	// ExpireDropped fails with KindNotFound.
	ExpireDropped(ctx context.Context, warehouse, uuid string, purge bool) error
	// Protected and SetProtected fail with KindNoSuch{Table,View,Namespace}.
	Protected(ctx context.Context, warehouse string, target catalog.Target) (bool, error)
	SetProtected(ctx context.Context, warehouse string, target catalog.Target, protected bool) error
	// MetricsReports fails with KindNoSuchTable.
	MetricsReports(ctx context.Context, warehouse string, id catalog.TableIdent, p catalog.ReportPage) (catalog.Page[catalog.Report], error)
}

// FunctionWriter is how the handlers make functions.
type FunctionWriter interface {
	// PutFunction fails with KindInvalid and KindNoSuchNamespace.
	PutFunction(ctx context.Context, warehouse string, id catalog.TableIdent, metadata json.RawMessage) error
	// DropFunction fails with KindNoSuchFunction.
	DropFunction(ctx context.Context, warehouse string, id catalog.TableIdent) error
}

var (
	_ Warehouses = (*catalog.Warehouses)(nil)
	_ Life       = (*catalog.Service)(nil)

	_ FunctionWriter = (*catalog.Service)(nil)
)

// manageServer implements the operations that manage warehouses and the life of tables.
type manageServer struct {
	warehouses Warehouses
	life       Life
	functions  FunctionWriter
}

var _ managerest.StrictServerInterface = (*manageServer)(nil)

// ListWarehouses handles GET /catalogd/v1/warehouses.
func (s *manageServer) ListWarehouses(ctx context.Context, _ managerest.ListWarehousesRequestObject) (managerest.ListWarehousesResponseObject, error) {
	all, err := s.warehouses.List(ctx)
	if err != nil {
		return nil, err
	}
	out := managerest.ListWarehouses200JSONResponse{Warehouses: []managerest.Warehouse{}}
	for _, w := range all {
		out.Warehouses = append(out.Warehouses, warehouseOf(w))
	}
	return out, nil
}

func warehouseOf(w catalog.WarehouseSettings) managerest.Warehouse {
	return managerest.Warehouse{
		Name: w.Name, Location: w.Location, Default: w.Default, SoftDeleteRetentionMs: w.SoftDelete.Milliseconds(),
		Protected: w.Protected, CreatedAt: w.CreatedAt.UTC(),
	}
}

// CreateWarehouse handles POST /catalogd/v1/warehouses.
func (s *manageServer) CreateWarehouse(ctx context.Context, req managerest.CreateWarehouseRequestObject) (managerest.CreateWarehouseResponseObject, error) {
	location, err := locationIn(text(req.Body.Location), "location")
	if err != nil {
		return nil, err
	}
	create := catalog.WarehouseSettings{
		Warehouse: catalog.Warehouse{Name: req.Body.Name, Location: location},
		Default:   req.Body.Default != nil && *req.Body.Default, Protected: req.Body.Protected != nil && *req.Body.Protected,
	}
	retention, err := retentionIn(req.Body.SoftDeleteRetentionMs)
	if err != nil {
		return nil, err
	}
	if retention != nil {
		create.SoftDelete = *retention
	}
	w, err := s.warehouses.Create(ctx, create)
	if err != nil {
		return nil, err
	}
	return managerest.CreateWarehouse201JSONResponse(warehouseOf(w)), nil
}

func retentionIn(ms *int64) (*time.Duration, error) {
	if ms == nil {
		return nil, nil //nolint:nilnil // absent
	}
	if *ms < 0 || *ms > catalog.MaxSoftDelete.Milliseconds() {
		return nil, invalid("Invalid member soft-delete-retention-ms: %d is not a number of milliseconds from 0 to %d", *ms, catalog.MaxSoftDelete.Milliseconds())
	}
	d := time.Duration(*ms) * time.Millisecond
	return &d, nil
}

// GetWarehouse handles GET /catalogd/v1/warehouses/{warehouse}.
func (s *manageServer) GetWarehouse(ctx context.Context, req managerest.GetWarehouseRequestObject) (managerest.GetWarehouseResponseObject, error) {
	w, err := s.warehouses.Get(ctx, req.Warehouse)
	if err != nil {
		return nil, err
	}
	return managerest.GetWarehouse200JSONResponse(warehouseOf(w)), nil
}

// UpdateWarehouse handles POST /catalogd/v1/warehouses/{warehouse}.
func (s *manageServer) UpdateWarehouse(ctx context.Context, req managerest.UpdateWarehouseRequestObject) (managerest.UpdateWarehouseResponseObject, error) {
	b := req.Body
	if b.Default != nil && !*b.Default {
		return nil, invalid("Invalid member default: there is always a default warehouse, so make another one the default instead")
	}
	u := catalog.WarehouseUpdate{Default: b.Default != nil, Protected: b.Protected}
	if b.Location != nil {
		location, err := locationIn(*b.Location, "location")
		if err != nil {
			return nil, err
		}
		u.Location = &location
	}
	var err error
	if u.SoftDelete, err = retentionIn(b.SoftDeleteRetentionMs); err != nil {
		return nil, err
	}
	w, err := s.warehouses.Update(ctx, req.Warehouse, u)
	if err != nil {
		return nil, err
	}
	return managerest.UpdateWarehouse200JSONResponse(warehouseOf(w)), nil
}

// DeleteWarehouse handles DELETE /catalogd/v1/warehouses/{warehouse}.
func (s *manageServer) DeleteWarehouse(ctx context.Context, req managerest.DeleteWarehouseRequestObject) (managerest.DeleteWarehouseResponseObject, error) {
	if err := s.warehouses.Delete(ctx, req.Warehouse); err != nil {
		return nil, err
	}
	return managerest.DeleteWarehouse204Response{}, nil
}
