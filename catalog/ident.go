package catalog

import (
	"slices"
	"strings"
)

// Namespace is the levels of a namespace, outermost first.
type Namespace []string

// String joins the levels with dots, as Iceberg's own messages do.
func (n Namespace) String() string { return strings.Join(n, ".") }

// Equal reports whether n and o have the same levels.
func (n Namespace) Equal(o Namespace) bool { return slices.Equal(n, o) }

// TableIdent names a table or a view inside a warehouse. Iceberg uses one identifier
// type for both, and so do we: a table and a view can never share a name.
type TableIdent struct {
	Namespace Namespace `json:"namespace"`
	Name      string    `json:"name"`
}

// String gives the dotted form used in messages: ns.sub.name.
func (t TableIdent) String() string {
	if len(t.Namespace) == 0 {
		return t.Name
	}
	return t.Namespace.String() + "." + t.Name
}

// Equal reports whether t and o name the same object.
func (t TableIdent) Equal(o TableIdent) bool {
	return t.Name == o.Name && t.Namespace.Equal(o.Namespace)
}

// ObjectType tells a table from a view.
type ObjectType string

// The object types, spelled as in column iceberg_type.
const (
	TypeTable ObjectType = "TABLE"
	TypeView  ObjectType = "VIEW"
)
