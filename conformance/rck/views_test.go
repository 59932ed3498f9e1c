package rck_test

import (
	"fmt"
	"strconv"
	"strings"
)

// viewState is what the generator needs to know of a view.
type viewState struct {
	Versions []struct {
		ID int `json:"version-id"`
	} `json:"versions"`
}

// viewGen is tableGen for views.
type viewGen struct {
	tableGen
}

func viewVersion(id, schema int, stamp int64, sql map[string]string) map[string]any {
	var representations []any
	for _, dialect := range []string{"spark", "trino", "SPARK"} {
		if text, ok := sql[dialect]; ok {
			representations = append(representations, map[string]any{"type": "sql", "sql": text, "dialect": dialect})
		}
	}
	return map[string]any{
		"version-id": id, "schema-id": schema, "timestamp-ms": stamp, "summary": map[string]string{"engine-name": "test"},
		"default-namespace": []string{"diff"}, "representations": representations,
	}
}

func (g *viewGen) commit(s *viewState) string {
	var requirements, updates []string
	if g.often(3) {
		requirements = append(requirements, object("type", "assert-view-uuid", "uuid", pick(g.Rand, "$uuid", "$uuid", "4b3c1a52-7d14-4d35-a5ac-8f2e0f6f8a11")))
	}
	for range 1 + g.IntN(3) {
		updates = append(updates, g.updateView(s)...)
	}
	return fmt.Sprintf(`{"requirements":[%s],"updates":[%s]}`, strings.Join(requirements, ","), strings.Join(updates, ","))
}

func (g *viewGen) updateView(s *viewState) []string {
	top := 0
	for _, v := range s.Versions {
		top = max(top, v.ID)
	}
	switch g.IntN(9) {
	case 0, 1, 2, 3:
		stamp := g.stamps[0] + g.fresh()
		g.stamps = append(g.stamps, stamp)
		sql := map[string]string{"spark": fmt.Sprintf("SELECT %d", 1+g.IntN(12))}
		if !g.often(3) {
			sql["trino"] = "SELECT 1"
		}
		if g.often(9) {
			sql["SPARK"] = "SELECT 2"
		}
		out := []string{update("add-view-version", "view-version", viewVersion(pick(g.Rand, top+1, top+1, top, 1, 40), g.IntN(4)-1, stamp, sql))}
		if !g.often(4) {
			out = append(out, update("set-current-view-version", "view-version-id", -1))
		}
		return out
	case 4:
		return []string{update("set-current-view-version", "view-version-id", pick(g.Rand, -1, 1, top, top+1))}
	case 5, 6:
		return []string{update("add-schema", "schema", map[string]any{"type": "struct", "schema-id": 0, "fields": []any{
			map[string]any{"id": g.IntN(3), "name": "c", "required": g.often(3), "type": pick(g.Rand, "int", "long")},
		}})}
	case 7:
		key := pick(g.Rand, "a", "version.history.num-entries", "replace.drop-dialect.allowed")
		if g.often(3) {
			return []string{update("remove-properties", "removals", []string{key})}
		}
		value := strconv.Itoa(g.IntN(5))
		if strings.HasPrefix(key, "replace") {
			value = pick(g.Rand, "true", "false", "TRUE")
		}
		return []string{update("set-properties", "updates", map[string]string{key: value})}
	default:
		return []string{pick(g.Rand, update("set-location", "location", here+"/moved"), update("assign-uuid", "uuid", "$uuid"),
			update("upgrade-format-version", "format-version", pick(g.Rand, 1, 1, 0, 2)))}
	}
}
