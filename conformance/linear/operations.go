package linear

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// maxSnapshots is when a client drops a table, so that documents stay small.
const maxSnapshots = 80

// act does one operation of the client's choice.
func (c *client) act(ctx context.Context) {
	c.replica = c.random.IntN(len(c.run.cfg.Replicas))
	group, name := c.random.IntN(c.run.cfg.Groups), c.random.IntN(len(tableNames))
	v := &c.views[group][name]
	other := (name + 1 + c.random.IntN(len(tableNames)-1)) % len(tableNames)
	dice := c.random.IntN(100)
	var o outcome
	switch {
	case dice < 18:
		o = c.load(ctx, group, name, c.replica, loadForm(c.random.IntN(3))).outcome
	case dice < 22:
		o = c.exists(ctx, group, name)
	case dice < 27:
		o = c.list(ctx, group, c.replica)
	case dice < 32:
		o = c.rename(ctx, group, name, other)
	case v.stale && dice < 90:
		o = c.load(ctx, group, name, c.replica, loadAll).outcome
	case v.table.creator == 0 && dice < 70:
		o = c.create(ctx, group, name)
	case v.table.creator == 0:
		o = c.load(ctx, group, name, c.replica, loadAll).outcome
	case dice < 34 || v.table.length >= maxSnapshots:
		o = c.drop(ctx, group, name)
	case dice < 37:
		o = c.create(ctx, group, name) // in vain, mostly
	case dice < 45:
		o = c.commit(ctx, group, []part{c.write(*v, name)})
	case dice < 60 && c.run.transactions && c.views[group][other].table.creator != 0:
		w := c.views[group][other]
		o = c.transact(ctx, group, []part{c.appendTo(*v, name), c.appendTo(w, other)})
	case dice < 63 && c.run.transactions:
		o = c.transact(ctx, group, []part{c.appendTo(*v, name), {name: other, create: true, creator: c.id()}})
	default:
		o = c.commit(ctx, group, []part{c.appendTo(*v, name)})
	}
	if o == unknown || o == refused {
		c.recover(ctx)
	}
}

func (c *client) id() int64 { return c.run.ids.Add(1) }

func (c *client) appendTo(v view, name int) part {
	return part{name: name, creator: v.table.creator, fenced: true, head: v.table.head, snapshot: c.id()}
}

func (c *client) write(v view, name int) part {
	return part{name: name, creator: v.table.creator, writer: c.id()}
}

func (c *client) tables(group int) string {
	return "/v1/" + c.run.cfg.Prefix + "/namespaces/" + namespace(group) + "/tables"
}

func (c *client) path(group, name int) string { return c.tables(group) + "/" + tableNames[name] }

// done records an operation.
func (c *client) done(group int, in input, out output, call time.Duration) output {
	op := operation{client: c.number, in: in, out: out, call: call, ret: c.run.now()}
	if out.outcome == refused || out.outcome == unknown {
		op.note = c.note
	}
	c.run.record(group, op)
	return out
}

// loadForm is how a table is asked for.
type loadForm int

const (
	loadAll loadForm = iota
	loadRefs
	loadIfChanged
)

func (c *client) load(ctx context.Context, group, name, replica int, form loadForm) output {
	c.replica = replica
	v, path := &c.views[group][name], c.path(group, name)
	var header map[string]string
	switch {
	case form == loadRefs:
		path += "?snapshots=refs"
	case form == loadIfChanged && v.etag != "":
		header = map[string]string{"If-None-Match": v.etag}
	}
	call := c.run.now()
	a := c.request(ctx, http.MethodGet, path, nil, header)
	out := output{outcome: c.judge(http.MethodGet, path, a)}
	switch {
	case out.outcome == noTable:
		*v = view{}
	case out.outcome != did:
	case a.status == http.StatusNotModified:
		v.stale = false
		out.sees, out.table = seesAll, v.table
	case form == loadRefs:
		out.sees = seesRefs
		out.table = c.understand(a, path, false).table
	default:
		*v = c.understand(a, path, true)
		out.sees, out.table = seesAll, v.table
	}
	return c.done(group, input{kind: opLoad, name: name}, out, call)
}

func (c *client) exists(ctx context.Context, group, name int) outcome {
	path, call := c.path(group, name), c.run.now()
	a := c.request(ctx, http.MethodHead, path, nil, nil)
	return c.done(group, input{kind: opExists, name: name}, output{outcome: c.judge(http.MethodHead, path, a)}, call).outcome
}

func (c *client) list(ctx context.Context, group, replica int) outcome {
	c.replica = replica
	call := c.run.now()
	a := c.request(ctx, http.MethodGet, c.tables(group), nil, nil)
	out := output{outcome: c.judge(http.MethodGet, c.tables(group), a)}
	if out.outcome == did {
		var page struct {
			Identifiers []struct {
				Name string `json:"name"`
			} `json:"identifiers"`
		}
		if err := a.decode(&page); err != nil {
			c.run.problem("list %s: %v", namespace(group), err)
		}
		for i, name := range tableNames {
			for _, id := range page.Identifiers {
				out.listed[i] = out.listed[i] || id.Name == name
			}
		}
	}
	return c.done(group, input{kind: opList}, out, call).outcome
}

func (c *client) rename(ctx context.Context, group, from, to int) outcome {
	ident := func(name int) map[string]any {
		return map[string]any{"namespace": []string{namespace(group)}, "name": tableNames[name]}
	}
	call := c.run.now()
	_, o := c.mutate(ctx, http.MethodPost, "/v1/"+c.run.cfg.Prefix+"/tables/rename", map[string]any{"source": ident(from), "destination": ident(to)})
	if o == did {
		c.views[group][to] = c.views[group][from] // if it still is what was seen last
		c.views[group][to].etag = ""
		c.views[group][from] = view{}
	}
	return c.done(group, input{kind: opRename, name: from, to: to}, output{outcome: o}, call).outcome
}

func (c *client) drop(ctx context.Context, group, name int) outcome {
	call := c.run.now()
	_, o := c.mutate(ctx, http.MethodDelete, c.path(group, name), nil)
	if o == did || o == noTable {
		c.views[group][name] = view{}
	}
	return c.done(group, input{kind: opDrop, name: name}, output{outcome: o}, call).outcome
}

// create makes a table, at once or by the commit that ends a staged creation.
func (c *client) create(ctx context.Context, group, name int) outcome {
	p := part{name: name, create: true, creator: c.id()}
	if c.random.IntN(2) == 0 {
		return c.commit(ctx, group, []part{p})
	}
	call := c.run.now()
	a, o := c.mutate(ctx, http.MethodPost, c.tables(group), newTable(p))
	return c.committed(group, []part{p}, a, o, call)
}

func newTable(p part) map[string]any {
	return map[string]any{"name": tableNames[p.name], "schema": schema(), "properties": properties(p.creator)}
}

// stage asks for the location of the tables that parts create. Staging changes nothing;
// it fails if the name is taken.
func (c *client) stage(ctx context.Context, group int, parts []part) outcome {
	for i := range parts {
		p := &parts[i]
		if !p.create {
			continue
		}
		body := newTable(*p)
		body["stage-create"] = true
		call := c.run.now()
		a := c.request(ctx, http.MethodPost, c.tables(group), body, nil)
		o := c.judge(http.MethodPost, c.tables(group), a)
		switch o {
		case did:
		case exists:
			return c.committed(group, []part{*p}, a, o, call)
		default:
			return refused
		}
		var staged struct {
			Metadata struct {
				Location string `json:"location"`
			} `json:"metadata"`
		}
		if err := a.decode(&staged); err != nil {
			c.run.problem("staged creation: %v", err)
		}
		p.location = staged.Metadata.Location
	}
	return did
}

// commit changes one table.
func (c *client) commit(ctx context.Context, group int, parts []part) outcome {
	if o := c.stage(ctx, group, parts); o != did {
		return o
	}
	call, path := c.run.now(), c.path(group, parts[0].name)
	a, o := c.mutate(ctx, http.MethodPost, path, c.change(group, parts[0]))
	return c.committed(group, parts, a, o, call)
}

func (c *client) committed(group int, parts []part, a answer, o outcome, call time.Duration) outcome {
	out, v := output{outcome: o}, &c.views[group][parts[0].name]
	switch o {
	case did:
		*v = c.understand(a, "commit", true)
		out.sees, out.table = seesAll, v.table
	case noTable:
		*v = view{}
	case failed, exists:
		v.stale = true
	}
	return c.done(group, input{kind: opCommit, parts: parts}, out, call).outcome
}

// transact changes several tables at once. The answer says no more than that.
func (c *client) transact(ctx context.Context, group int, parts []part) outcome {
	if o := c.stage(ctx, group, parts); o != did {
		return o
	}
	var changes []any
	for _, p := range parts {
		change := c.change(group, p)
		change["identifier"] = map[string]any{"namespace": []string{namespace(group)}, "name": tableNames[p.name]}
		changes = append(changes, change)
	}
	call := c.run.now()
	_, o := c.mutate(ctx, http.MethodPost, "/v1/"+c.run.cfg.Prefix+"/transactions/commit", map[string]any{"table-changes": changes})
	for _, p := range parts {
		c.views[group][p.name].stale = true
	}
	return c.done(group, input{kind: opCommit, parts: parts}, output{outcome: o}, call).outcome
}

// change is the requirements and updates of a part.
func (c *client) change(group int, p part) map[string]any {
	v := c.views[group][p.name]
	if p.create {
		return map[string]any{
			"requirements": []any{map[string]any{"type": "assert-create"}},
			"updates": []any{
				map[string]any{"action": "upgrade-format-version", "format-version": 2},
				map[string]any{"action": "add-schema", "schema": schema()},
				map[string]any{"action": "set-current-schema", "schema-id": -1},
				map[string]any{"action": "add-spec", "spec": map[string]any{"spec-id": 0, "fields": []any{}}},
				map[string]any{"action": "set-default-spec", "spec-id": -1},
				map[string]any{"action": "add-sort-order", "sort-order": map[string]any{"order-id": 0, "fields": []any{}}},
				map[string]any{"action": "set-default-sort-order", "sort-order-id": -1},
				map[string]any{"action": "set-location", "location": p.location},
				map[string]any{"action": "set-properties", "updates": properties(p.creator)},
			},
		}
	}
	requirements, updates := []any{map[string]any{"type": "assert-table-uuid", "uuid": v.uuid}}, []any{}
	if p.fenced {
		requirements = append(requirements, map[string]any{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": optional(p.head)})
	}
	if p.snapshot != 0 {
		snapshot := map[string]any{
			"snapshot-id": p.snapshot, "sequence-number": v.table.length + 1, "timestamp-ms": time.Now().UnixMilli(),
			"manifest-list": "file:///nowhere/" + strconv.FormatInt(p.snapshot, 10) + ".avro",
			"summary":       map[string]any{"operation": "append"}, "schema-id": 0,
		}
		if p.head != 0 {
			snapshot["parent-snapshot-id"] = p.head
		}
		updates = append(updates, map[string]any{"action": "add-snapshot", "snapshot": snapshot},
			map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": p.snapshot})
	}
	if p.writer != 0 {
		updates = append(updates, map[string]any{"action": "set-properties", "updates": map[string]any{"writer": strconv.FormatInt(p.writer, 10)}})
	}
	return map[string]any{"requirements": requirements, "updates": updates}
}

func optional(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}

func schema() map[string]any {
	return map[string]any{"type": "struct", "fields": []any{map[string]any{"id": 1, "name": "v", "required": false, "type": "long"}}}
}

// properties mark a table as made by an operation. Every other one has compressed files.
func properties(creator int64) map[string]any {
	codec := "none"
	if creator%2 == 0 {
		codec = "gzip"
	}
	return map[string]any{
		"creator": strconv.FormatInt(creator, 10), "write.metadata.compression-codec": codec,
		"write.metadata.previous-versions-max": "2",
	}
}
