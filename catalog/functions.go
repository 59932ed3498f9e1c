package catalog

import (
	"context"
	"encoding/json"
)

// FunctionStore is where the functions of namespaces are kept.
type FunctionStore interface {
	// ListFunctions lists the functions of a namespace; KindNoSuchNamespace.
	ListFunctions(ctx context.Context, warehouse string, ns Namespace, p PageRequest) (Page[string], error)
	// Function returns the metadata of a function; KindNoSuchNamespace,
	// KindNoSuchFunction.
	Function(ctx context.Context, warehouse string, id TableIdent) (json.RawMessage, error)
	// PutFunction makes a function or replaces it; KindNoSuchNamespace.
	PutFunction(ctx context.Context, warehouse string, id TableIdent, metadata json.RawMessage) error
	// DropFunction fails with KindNoSuchFunction.
	DropFunction(ctx context.Context, warehouse string, id TableIdent) error
}

// ListFunctions lists the functions of a namespace.
func (s *Service) ListFunctions(ctx context.Context, warehouse string, ns Namespace, p PageRequest) (Page[TableIdent], error) {
	names, err := s.store.ListFunctions(ctx, warehouse, ns, p)
	if err != nil {
		return Page[TableIdent]{}, err
	}
	return named(ns, names), nil
}

// LoadFunction returns the metadata of a function, as it was put.
func (s *Service) LoadFunction(ctx context.Context, warehouse string, id TableIdent) (json.RawMessage, error) {
	return s.store.Function(ctx, warehouse, id)
}
