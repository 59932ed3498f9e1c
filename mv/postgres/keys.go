package postgres

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// keyColumns is a list of keys as three parallel arrays, which is how SQL takes them.
type keyColumns struct {
	warehouses, namespaces, names []string
}

func columns(keys []mv.Key) keyColumns {
	c := keyColumns{
		warehouses: make([]string, len(keys)),
		namespaces: make([]string, len(keys)),
		names:      make([]string, len(keys)),
	}
	for i, k := range keys {
		c.warehouses[i], c.namespaces[i], c.names[i] = k.Warehouse, k.Namespace, k.Name
	}
	return c
}

func compareKeys(a, b mv.Key) int {
	return cmp.Or(cmp.Compare(a.Warehouse, b.Warehouse), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// nameLocks gives the numbers of the advisory locks on names, sorted and without
// duplicates: every transaction takes them in this order.
func nameLocks(keys []mv.Key) []int64 {
	locks := make([]int64, 0, len(keys))
	for _, k := range keys {
		sum := sha256.Sum256([]byte("catalogd name\x00" + k.Warehouse + "\x00" + k.Namespace + "\x00" + k.Name))
		locks = append(locks, int64(binary.BigEndian.Uint64(sum[:8])))
	}
	slices.Sort(locks)
	return slices.Compact(locks)
}

func identOf(namespace, name string) catalog.TableIdent {
	return catalog.TableIdent{Namespace: catalog.DecodeNamespace(namespace), Name: name}
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
