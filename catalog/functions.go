package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
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

// PutFunction makes a function or replaces it. The metadata is kept as it is; what is
// checked is what a client needs to choose an overload.
func (s *Service) PutFunction(ctx context.Context, warehouse string, id TableIdent, metadata json.RawMessage) error {
	if err := CheckIdent(id); err != nil {
		return err
	}
	if err := checkFunction(metadata); err != nil {
		return Errorf(KindInvalid, "Invalid function %s: %s", id, err.Error())
	}
	return s.store.PutFunction(ctx, warehouse, id, metadata)
}

// DropFunction drops a function.
func (s *Service) DropFunction(ctx context.Context, warehouse string, id TableIdent) error {
	return s.store.DropFunction(ctx, warehouse, id)
}

// function is what the UDF specification requires of a function's metadata.
type function struct {
	UUID          string               `json:"function-uuid"`
	FormatVersion int                  `json:"format-version"`
	Definitions   []functionDefinition `json:"definitions"`
	Log           *[]json.RawMessage   `json:"definition-log"`
}

type functionDefinition struct {
	ID             string             `json:"definition-id"`
	Parameters     *[]json.RawMessage `json:"parameters"`
	ReturnType     json.RawMessage    `json:"return-type"`
	Type           string             `json:"function-type"`
	CurrentVersion *int               `json:"current-version-id"`
	Versions       []struct {
		ID *int `json:"version-id"`
	} `json:"versions"`
}

// functionFormat is the only version of the metadata format that exists.
const functionFormat = 1

func checkFunction(metadata json.RawMessage) error {
	var f function
	if err := json.Unmarshal(metadata, &f); err != nil {
		return err
	}
	switch {
	case uuid.Validate(f.UUID) != nil:
		return fmt.Errorf("function-uuid %q is not a UUID", f.UUID)
	case f.FormatVersion != functionFormat:
		return fmt.Errorf("format-version is %d, %d is known", f.FormatVersion, functionFormat)
	case len(f.Definitions) == 0:
		return errors.New("definitions is missing or empty")
	case f.Log == nil:
		return errors.New("definition-log is missing")
	}
	seen := map[string]bool{}
	for i, d := range f.Definitions {
		if err := d.check(); err != nil {
			return fmt.Errorf("definitions[%d]: %w", i, err)
		}
		if seen[d.ID] {
			return fmt.Errorf("definitions[%d]: definition-id %q is there twice", i, d.ID)
		}
		seen[d.ID] = true
	}
	return nil
}

func (d functionDefinition) check() error {
	switch {
	case d.ID == "" && (d.Parameters == nil || len(*d.Parameters) > 0):
		return errors.New("definition-id is missing")
	case d.Parameters == nil:
		return errors.New("parameters is missing")
	case len(d.ReturnType) == 0:
		return errors.New("return-type is missing")
	case d.Type != "udf" && d.Type != "udtf":
		return fmt.Errorf("function-type %q is neither udf nor udtf", d.Type)
	case d.CurrentVersion == nil:
		return errors.New("current-version-id is missing")
	}
	for _, v := range d.Versions {
		if v.ID != nil && *v.ID == *d.CurrentVersion {
			return nil
		}
	}
	return fmt.Errorf("versions has no version-id %d, which is the current one", *d.CurrentVersion)
}
