package api

import (
	"strings"

	"github.com/catalogd/catalogd/catalog"
)

// namespaceSeparator joins the levels of a namespace in URLs. Why it is the only one: see
// the package comment.
const (
	namespaceSeparator        = "\x1f"
	namespaceSeparatorEscaped = "%1F"
)

// namespaceOf splits a decoded path segment or query value.
func namespaceOf(joined string) (catalog.Namespace, error) {
	if joined == "" {
		return nil, invalid("Namespace is empty: it needs at least one level")
	}
	ns := catalog.Namespace(strings.Split(joined, namespaceSeparator))
	if err := catalog.CheckNamespace(ns); err != nil {
		return nil, err
	}
	return ns, nil
}

// identOf is a table or view named by a path.
func identOf(namespace, name string) (catalog.TableIdent, error) {
	ns, err := namespaceOf(namespace)
	if err != nil {
		return catalog.TableIdent{}, err
	}
	id := catalog.TableIdent{Namespace: ns, Name: name}
	return id, catalog.CheckIdent(id)
}

// namespaceIn checks a namespace that came in a body. Its levels must be such that a path
// can name them.
func namespaceIn(levels []string, member string) (catalog.Namespace, error) {
	if len(levels) == 0 {
		return nil, invalid("Missing member %s: it needs at least one level", member)
	}
	for _, level := range levels {
		if strings.Contains(level, namespaceSeparator) {
			return nil, invalid("Invalid member %s: level %q holds the namespace separator (0x1F), so no URL could name it", member, level)
		}
	}
	ns := catalog.Namespace(levels)
	return ns, catalog.CheckNamespace(ns)
}

// identIn checks a table or view that came in a body.
func identIn(levels []string, name, member string) (catalog.TableIdent, error) {
	ns, err := namespaceIn(levels, member+".namespace")
	if err != nil {
		return catalog.TableIdent{}, err
	}
	if name == "" {
		return catalog.TableIdent{}, invalid("Missing member %s.name", member)
	}
	id := catalog.TableIdent{Namespace: ns, Name: name}
	return id, catalog.CheckIdent(id)
}

// flag reads a boolean as clients write it: Python's False among them.
func flag(value *string, parameter string) (bool, error) {
	switch strings.ToLower(text(value)) {
	case "", "false", "0":
		return false, nil
	case "true", "1":
		return true, nil
	}
	return false, invalid("Invalid parameter %s: %q is neither true nor false", parameter, *value)
}
