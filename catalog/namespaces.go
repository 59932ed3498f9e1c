package catalog

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxName is the width of the name columns that other catalog implementations made.
const maxName = 255

// propExists is the row that marks a namespace without properties, as the SQL catalogs
// of PyIceberg and Java have it. It is theirs and ours, never a client's.
const propExists = "exists"

// CheckNamespace returns KindInvalid for a namespace that cannot be stored.
func CheckNamespace(ns Namespace) error {
	if len(ns) == 0 {
		return Errorf(KindInvalid, "Namespace is empty: it needs at least one level")
	}
	for i, level := range ns {
		if err := checkName(level); err != nil {
			return Errorf(KindInvalid, "Invalid namespace %q: level %d %s", ns.String(), i+1, err.Error())
		}
	}
	if n := utf8.RuneCountInString(EncodeNamespace(ns)); n > maxName {
		return Errorf(KindInvalid, "Invalid namespace: it has %d characters, %d are allowed", n, maxName)
	}
	return nil
}

// CheckIdent returns KindInvalid for a name that cannot be stored.
func CheckIdent(id TableIdent) error {
	if err := CheckNamespace(id.Namespace); err != nil {
		return err
	}
	if err := checkName(id.Name); err != nil {
		return Errorf(KindInvalid, "Invalid name %q: it %s", id.Name, err.Error())
	}
	return nil
}

type nameError string

func (e nameError) Error() string { return string(e) }

func checkName(name string) error {
	switch {
	case name == "":
		return nameError("is empty")
	case !utf8.ValidString(name):
		return nameError("is not valid UTF-8")
	case strings.ContainsRune(name, 0):
		return nameError("holds a NUL character")
	case utf8.RuneCountInString(name) > maxName:
		return nameError("is longer than 255 characters")
	}
	return nil
}

// ListNamespaces lists the children of parent, the top level if parent is empty.
func (s *Service) ListNamespaces(ctx context.Context, warehouse string, parent Namespace, p PageRequest) (Page[Namespace], error) {
	return s.store.ListNamespaces(ctx, warehouse, parent, p)
}

// CreateNamespace creates ns and returns its properties.
func (s *Service) CreateNamespace(ctx context.Context, warehouse string, ns Namespace, props map[string]string) (map[string]string, error) {
	if props == nil {
		props = map[string]string{}
	}
	return once(ctx, s, warehouse,
		func() (map[string]string, error) { return s.createNamespace(ctx, warehouse, ns, props) },
		func(Outcome) (map[string]string, error) { return props, nil })
}

func (s *Service) createNamespace(ctx context.Context, warehouse string, ns Namespace, props map[string]string) (map[string]string, error) {
	if err := CheckNamespace(ns); err != nil {
		return nil, err
	}
	if err := checkProperties(props); err != nil {
		return nil, err
	}
	return props, s.store.CreateNamespace(ctx, warehouse, ns, props)
}

// LoadNamespace returns the properties of ns.
func (s *Service) LoadNamespace(ctx context.Context, warehouse string, ns Namespace) (map[string]string, error) {
	return s.store.Namespace(ctx, warehouse, ns)
}

// DropNamespace drops an empty namespace.
func (s *Service) DropNamespace(ctx context.Context, warehouse string, ns Namespace) error {
	return onceOnly(ctx, s, warehouse, func() error { return s.store.DropNamespace(ctx, warehouse, ns) })
}

// UpdateNamespace removes and sets properties. A key in both lists is
// KindUnprocessable.
func (s *Service) UpdateNamespace(ctx context.Context, warehouse string, ns Namespace, removals []string, updates map[string]string) (NamespaceUpdate, error) {
	missing, err := once(ctx, s, warehouse,
		func() ([]string, error) { return s.updateNamespace(ctx, warehouse, ns, removals, updates) },
		func(o Outcome) (missing []string, err error) { return missing, json.Unmarshal(o.Detail, &missing) })
	if err != nil {
		return NamespaceUpdate{}, err
	}
	out := NamespaceUpdate{Missing: missing, Updated: slices.Sorted(maps.Keys(updates))}
	for _, k := range unique(removals) {
		if !slices.Contains(missing, k) {
			out.Removed = append(out.Removed, k)
		}
	}
	return out, nil
}

// updateNamespace returns which of the removals were not there.
func (s *Service) updateNamespace(ctx context.Context, warehouse string, ns Namespace, removals []string, updates map[string]string) ([]string, error) {
	if err := checkProperties(updates); err != nil {
		return nil, err
	}
	for _, k := range removals {
		if _, both := updates[k]; both {
			return nil, Errorf(KindUnprocessable, "Property %q is both removed and updated", k)
		}
	}
	return s.store.UpdateNamespace(ctx, warehouse, ns, unique(removals), updates)
}

// unique keeps the first of equal items.
func unique(items []string) []string {
	seen := make(map[string]bool, len(items))
	out := make([]string, 0, len(items))
	for _, k := range items {
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}

func checkProperties(props map[string]string) error {
	for k, v := range props {
		switch {
		case k == "":
			return Errorf(KindInvalid, "A property key is empty")
		case k == propExists:
			return Errorf(KindInvalid, "Property %q is reserved", k)
		case utf8.RuneCountInString(k) > maxName:
			return Errorf(KindInvalid, "Property key %.40q… is longer than %d characters", k, maxName)
		case strings.ContainsRune(k, 0) || strings.ContainsRune(v, 0) || !utf8.ValidString(k) || !utf8.ValidString(v):
			return Errorf(KindInvalid, "Property %q holds a NUL character or invalid UTF-8", k)
		}
	}
	return nil
}
