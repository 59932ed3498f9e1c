package catalog

import "context"

// TypeNamespace is the type of a namespace in a [Target]; it is never stored.
const TypeNamespace ObjectType = "NAMESPACE"

// Target is a table, a view or a namespace. The name of a namespace's ident is empty.
type Target struct {
	Type  ObjectType
	Ident TableIdent
}

// Protected reports whether an object is protected from being dropped.
func (s *Service) Protected(ctx context.Context, warehouse string, target Target) (bool, error) {
	return s.store.Protected(ctx, warehouse, target)
}

// SetProtected protects an object from being dropped, purged and unregistered, or lifts
// that. Its contents and its name may change all the same.
func (s *Service) SetProtected(ctx context.Context, warehouse string, target Target, protected bool) error {
	return s.store.SetProtected(ctx, warehouse, target, protected)
}

// ErrProtected is the refusal to drop something that is protected.
func ErrProtected(target Target) *Error {
	switch target.Type {
	case TypeNamespace:
		return Errorf(KindConflict, "Namespace %s is protected and cannot be dropped: lift that with `catalogd namespace unprotect %s`",
			target.Ident.Namespace, target.Ident.Namespace)
	case TypeView:
		return Errorf(KindConflict, "View %s is protected and cannot be dropped: lift that with `catalogd table unprotect %s`", target.Ident, target.Ident)
	default:
		return Errorf(KindConflict, "Table %s is protected and cannot be dropped: lift that with `catalogd table unprotect %s`", target.Ident, target.Ident)
	}
}
