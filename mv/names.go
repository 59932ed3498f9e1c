package mv

import (
	"context"
	"slices"
	"strings"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv/sqltext"
)

// resolve finds the object behind a name, with or without the client's catalog in front.
func (a *analyser) resolve(ctx context.Context, t text, q *sqltext.Query, ref sqltext.TableRef, f frame) (catalog.Pointer, error) {
	if ref.TimeTravel {
		return catalog.Pointer{}, ErrInput("%s: %s picks a version of the table; a materialized view follows the current one", q.Position(ref.Start), ref)
	}
	candidates := candidateNames(ref.Parts, t)
	for _, id := range candidates {
		key := KeyOf(a.warehouse, id)
		if !f.probing { // what a materialized view below reads is its own business
			a.probed[key] = true
		}
		row, ok, err := a.object(ctx, key)
		if err != nil || ok {
			return row, err
		}
	}
	if len(candidates) == 0 {
		return catalog.Pointer{}, ErrInput("%s: %s has no namespace, and the view has no default one", q.Position(ref.Start), ref)
	}
	return catalog.Pointer{}, ErrInput("%s: table or view %s does not exist", q.Position(ref.Start), ref)
}

// candidateNames lists what a dotted name can mean, most likely first. Engines put their
// own name of the catalog in front, write nested namespaces as one dotted part (Trino),
// and fold the case of unquoted names.
func candidateNames(parts []string, t text) []catalog.TableIdent {
	var out []catalog.TableIdent
	add := func(ns []string, name string) {
		for _, levels := range [][]string{ns, splitLevels(ns)} {
			id := catalog.TableIdent{Namespace: levels, Name: name}
			if len(levels) > 0 && !slices.ContainsFunc(out, id.Equal) {
				out = append(out, id)
			}
		}
	}
	spellings := [][]string{parts}
	if low := lower(parts); !slices.Equal(low, parts) {
		spellings = append(spellings, low)
	}
	for _, p := range spellings {
		last := len(p) - 1
		switch {
		case last == 0:
			add(t.DefaultNS, p[0])
		case last >= 2 && t.Catalog != "" && p[0] == t.Catalog:
			add(p[1:last], p[last])
			add(p[:last], p[last])
		default:
			add(p[:last], p[last])
			if last >= 2 {
				add(p[1:last], p[last])
			}
		}
	}
	return out
}

func splitLevels(ns []string) []string {
	var out []string
	for _, level := range ns {
		out = append(out, strings.Split(level, ".")...)
	}
	return out
}

func lower(parts []string) []string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = strings.ToLower(p)
	}
	return out
}
