package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/scan"
)

const warehouse = "wh"

// fakeCatalog is a small catalog in memory. It has just enough behaviour for the wire;
// what a commit means is tested where it is implemented.
type fakeCatalog struct {
	mu         sync.Mutex
	namespaces map[string]map[string]string // by encoded name
	objects    map[string]*object           // by type and encoded name
	calls      []string                     // what reached the catalog, with its arguments
	fail       error                        // returned by every method if set
	panics     any                          // thrown by LoadTable and CommitTable if set
	reports    []json.RawMessage
	creates    []catalog.CreateTableRequest
	views      []catalog.CreateViewRequest
	commits    []catalog.CommitRequest
	receipt    *catalog.Receipt // of the last call
}

type object struct {
	id       catalog.TableIdent
	location string
	document *catalog.Document
}

func newFake() *fakeCatalog {
	return &fakeCatalog{namespaces: map[string]map[string]string{}, objects: map[string]*object{}}
}

func key(typ catalog.ObjectType, id catalog.TableIdent) string {
	return string(typ) + "|" + catalog.EncodeNamespace(id.Namespace) + "|" + id.Name
}

// put stores an object whose document is all, and refs for snapshots=refs.
func (f *fakeCatalog) put(typ catalog.ObjectType, ns, name, all, refs string) {
	id := catalog.TableIdent{Namespace: catalog.DecodeNamespace(ns), Name: name}
	f.namespaces[ns] = map[string]string{}
	location := "file:///wh/" + ns + "/" + name + "/metadata/00001-a.metadata.json"
	f.objects[key(typ, id)] = &object{id: id, location: location, document: catalog.NewDocument(location, []byte(all), []byte(refs))}
}

func (f *fakeCatalog) enter(ctx context.Context, wh, call string) (func(), error) {
	f.mu.Lock()
	f.receipt = catalog.ReceiptOf(ctx)
	f.calls = append(f.calls, call)
	if f.fail != nil {
		return f.mu.Unlock, f.fail
	}
	if wh != warehouse {
		return f.mu.Unlock, catalog.Errorf(catalog.KindNoSuchWarehouse, "Warehouse does not exist: %s", wh)
	}
	return f.mu.Unlock, nil
}

func (f *fakeCatalog) lastCall() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.calls) == 0 {
		return ""
	}
	return f.calls[len(f.calls)-1]
}

func (f *fakeCatalog) Config(ctx context.Context, wh string) (catalog.Warehouse, error) {
	if wh == "" {
		wh = warehouse
	}
	unlock, err := f.enter(ctx, wh, "config "+wh)
	defer unlock()
	return catalog.Warehouse{Name: wh, Location: "file:///wh"}, err
}

func page[T any](items []T, name func(T) string, p catalog.PageRequest) catalog.Page[T] {
	slices.SortFunc(items, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	if p.After != "" {
		i := slices.IndexFunc(items, func(t T) bool { return name(t) > p.After })
		if i < 0 {
			return catalog.Page[T]{}
		}
		items = items[i:]
	}
	if p.Size == 0 || len(items) <= p.Size {
		return catalog.Page[T]{Items: items}
	}
	return catalog.Page[T]{Items: items[:p.Size], Next: name(items[p.Size-1])}
}

func (f *fakeCatalog) ListNamespaces(ctx context.Context, wh string, parent catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.Namespace], error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("namespaces %q %d", []string(parent), p.Size))
	defer unlock()
	if err != nil {
		return catalog.Page[catalog.Namespace]{}, err
	}
	var out []catalog.Namespace
	for name := range f.namespaces {
		ns := catalog.DecodeNamespace(name)
		if len(ns) == len(parent)+1 && ns[:len(parent)].Equal(parent) {
			out = append(out, ns)
		}
	}
	return page(out, catalog.Namespace.String, p), nil
}

func (f *fakeCatalog) namespace(ns catalog.Namespace) (map[string]string, error) {
	props, ok := f.namespaces[catalog.EncodeNamespace(ns)]
	if !ok {
		return nil, catalog.Errorf(catalog.KindNoSuchNamespace, "Namespace does not exist: %s", ns)
	}
	return props, nil
}

func (f *fakeCatalog) CreateNamespace(ctx context.Context, wh string, ns catalog.Namespace, props map[string]string) (map[string]string, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("create namespace %q %v", []string(ns), props))
	defer unlock()
	if err != nil {
		return nil, err
	}
	if _, err := f.namespace(ns); err == nil {
		return nil, catalog.Errorf(catalog.KindAlreadyExists, "Namespace already exists: %s", ns)
	}
	f.namespaces[catalog.EncodeNamespace(ns)] = maps.Clone(props)
	return props, nil
}

func (f *fakeCatalog) LoadNamespace(ctx context.Context, wh string, ns catalog.Namespace) (map[string]string, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("namespace %q", []string(ns)))
	defer unlock()
	if err != nil {
		return nil, err
	}
	return f.namespace(ns)
}

func (f *fakeCatalog) DropNamespace(ctx context.Context, wh string, ns catalog.Namespace) error {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("drop namespace %q", []string(ns)))
	defer unlock()
	if err != nil {
		return err
	}
	if _, err := f.namespace(ns); err != nil {
		return err
	}
	for _, o := range f.objects {
		if o.id.Namespace.Equal(ns) {
			return catalog.Errorf(catalog.KindNamespaceNotEmpty, "Namespace %s is not empty", ns)
		}
	}
	delete(f.namespaces, catalog.EncodeNamespace(ns))
	return nil
}

func (f *fakeCatalog) UpdateNamespace(ctx context.Context, wh string, ns catalog.Namespace, removals []string, updates map[string]string) (catalog.NamespaceUpdate, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("update namespace %q %q %v", []string(ns), removals, updates))
	defer unlock()
	if err != nil {
		return catalog.NamespaceUpdate{}, err
	}
	props, err := f.namespace(ns)
	if err != nil {
		return catalog.NamespaceUpdate{}, err
	}
	var out catalog.NamespaceUpdate
	for _, k := range removals {
		if _, ok := props[k]; ok {
			out.Removed = append(out.Removed, k)
		} else {
			out.Missing = append(out.Missing, k)
		}
	}
	out.Updated = slices.Sorted(maps.Keys(updates))
	return out, nil
}

func (f *fakeCatalog) list(ctx context.Context, wh string, typ catalog.ObjectType, ns catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.TableIdent], error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("list %s %q %d", typ, []string(ns), p.Size))
	defer unlock()
	if err != nil {
		return catalog.Page[catalog.TableIdent]{}, err
	}
	if _, err := f.namespace(ns); err != nil {
		return catalog.Page[catalog.TableIdent]{}, err
	}
	var out []catalog.TableIdent
	for k, o := range f.objects {
		if strings.HasPrefix(k, string(typ)) && o.id.Namespace.Equal(ns) {
			out = append(out, o.id)
		}
	}
	return page(out, func(id catalog.TableIdent) string { return id.Name }, p), nil
}

func (f *fakeCatalog) ListTables(ctx context.Context, wh string, ns catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.TableIdent], error) {
	return f.list(ctx, wh, catalog.TypeTable, ns, p)
}

func (f *fakeCatalog) ListViews(ctx context.Context, wh string, ns catalog.Namespace, p catalog.PageRequest) (catalog.Page[catalog.TableIdent], error) {
	return f.list(ctx, wh, catalog.TypeView, ns, p)
}

func (f *fakeCatalog) load(ctx context.Context, wh string, typ catalog.ObjectType, id catalog.TableIdent, verb string) (catalog.Loaded, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("%s %s %q %q", verb, typ, []string(id.Namespace), id.Name))
	defer unlock()
	if f.panics != nil {
		panic(f.panics)
	}
	if err != nil {
		return catalog.Loaded{}, err
	}
	o, ok := f.objects[key(typ, id)]
	if !ok && typ == catalog.TypeView {
		return catalog.Loaded{}, catalog.Errorf(catalog.KindNoSuchView, "View does not exist: %s", id)
	}
	if !ok {
		return catalog.Loaded{}, catalog.Errorf(catalog.KindNoSuchTable, "Table does not exist: %s", id)
	}
	return catalog.Loaded{Pointer: catalog.Pointer{Ident: id, Type: typ, MetadataLocation: o.location}, Document: o.document}, nil
}

func (f *fakeCatalog) LoadTable(ctx context.Context, wh string, id catalog.TableIdent) (catalog.Loaded, error) {
	return f.load(ctx, wh, catalog.TypeTable, id, "load")
}

func (f *fakeCatalog) TableExists(ctx context.Context, wh string, id catalog.TableIdent) error {
	_, err := f.load(ctx, wh, catalog.TypeTable, id, "exists")
	return err
}

func (f *fakeCatalog) LoadView(ctx context.Context, wh string, id catalog.TableIdent) (catalog.Loaded, error) {
	return f.load(ctx, wh, catalog.TypeView, id, "load")
}

func (f *fakeCatalog) ViewExists(ctx context.Context, wh string, id catalog.TableIdent) error {
	_, err := f.load(ctx, wh, catalog.TypeView, id, "exists")
	return err
}

func (f *fakeCatalog) CommitTable(ctx context.Context, wh string, id catalog.TableIdent, req catalog.CommitRequest) (catalog.Loaded, error) {
	f.commits = append(f.commits, req)
	return f.load(ctx, wh, catalog.TypeTable, id, "commit")
}

func (f *fakeCatalog) ReplaceView(ctx context.Context, wh string, id catalog.TableIdent, req catalog.CommitRequest) (catalog.Loaded, error) {
	f.commits = append(f.commits, req)
	return f.load(ctx, wh, catalog.TypeView, id, "replace")
}

func (f *fakeCatalog) DropTable(ctx context.Context, wh string, id catalog.TableIdent, purge bool) error {
	_, err := f.load(ctx, wh, catalog.TypeTable, id, fmt.Sprintf("drop purge=%t", purge))
	return err
}

func (f *fakeCatalog) DropView(ctx context.Context, wh string, id catalog.TableIdent) error {
	_, err := f.load(ctx, wh, catalog.TypeView, id, "drop")
	return err
}

func (f *fakeCatalog) RenameTable(ctx context.Context, wh string, from, to catalog.TableIdent) error {
	_, err := f.load(ctx, wh, catalog.TypeTable, from, fmt.Sprintf("rename to %q %q,", []string(to.Namespace), to.Name))
	return err
}

func (f *fakeCatalog) RenameView(ctx context.Context, wh string, from, to catalog.TableIdent) error {
	_, err := f.load(ctx, wh, catalog.TypeView, from, fmt.Sprintf("rename to %q %q,", []string(to.Namespace), to.Name))
	return err
}

func (f *fakeCatalog) ReportMetrics(ctx context.Context, wh string, id catalog.TableIdent, report json.RawMessage) error {
	unlock, err := f.enter(ctx, wh, "report "+id.String())
	defer unlock()
	f.reports = append(f.reports, report)
	return err
}

func (f *fakeCatalog) create(ctx context.Context, wh string, ns catalog.Namespace, name string, staged bool) (catalog.Loaded, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("create %q %q staged=%t", []string(ns), name, staged))
	defer unlock()
	if err != nil {
		return catalog.Loaded{}, err
	}
	if _, err := f.namespace(ns); err != nil {
		return catalog.Loaded{}, err
	}
	p := catalog.Pointer{Ident: catalog.TableIdent{Namespace: ns, Name: name}}
	if !staged {
		p.MetadataLocation = "file:///wh/" + name + "/metadata/00000-a.metadata.json"
	}
	return catalog.Loaded{Pointer: p, Document: catalog.NewDocument(p.MetadataLocation, []byte(`{"new":true}`), nil)}, nil
}

func (f *fakeCatalog) CreateTable(ctx context.Context, wh string, ns catalog.Namespace, req catalog.CreateTableRequest) (catalog.Loaded, error) {
	f.creates = append(f.creates, req)
	return f.create(ctx, wh, ns, req.Name, req.StageCreate)
}

func (f *fakeCatalog) RegisterTable(ctx context.Context, wh string, ns catalog.Namespace, name, location string, overwrite bool) (catalog.Loaded, error) {
	return f.create(ctx, wh, ns, fmt.Sprintf("%s from %s overwrite=%t", name, location, overwrite), false)
}

func (f *fakeCatalog) CreateView(ctx context.Context, wh string, ns catalog.Namespace, req catalog.CreateViewRequest) (catalog.Loaded, error) {
	f.views = append(f.views, req)
	return f.create(ctx, wh, ns, req.Name, false)
}

func (f *fakeCatalog) RegisterView(ctx context.Context, wh string, ns catalog.Namespace, name, location string) (catalog.Loaded, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("register view %s.%s %s", ns, name, location))
	defer unlock()
	if err != nil {
		return catalog.Loaded{}, err
	}
	doc := catalog.NewDocument(location, []byte(`{"view":true}`), nil)
	return catalog.Loaded{Pointer: catalog.Pointer{MetadataLocation: location}, Document: doc}, nil
}

func (f *fakeCatalog) UnregisterTable(ctx context.Context, wh string, id catalog.TableIdent) (catalog.Loaded, error) {
	unlock, err := f.enter(ctx, wh, "unregister "+id.String())
	defer unlock()
	if err != nil {
		return catalog.Loaded{}, err
	}
	o, ok := f.objects[key(catalog.TypeTable, id)]
	if !ok {
		return catalog.Loaded{}, catalog.Errorf(catalog.KindNoSuchTable, "Table does not exist: %s", id)
	}
	delete(f.objects, key(catalog.TypeTable, id))
	return catalog.Loaded{Pointer: catalog.Pointer{MetadataLocation: o.location}, Document: o.document}, nil
}

func (f *fakeCatalog) CommitTransaction(ctx context.Context, wh string, commits []catalog.TableCommit) error {
	call := []string{"transaction"}
	for _, c := range commits {
		call = append(call, fmt.Sprintf("%s %d/%d", c.Ident, len(c.Requirements), len(c.Updates)))
	}
	unlock, err := f.enter(ctx, wh, strings.Join(call, " "))
	defer unlock()
	return err
}

func (f *fakeCatalog) ListFunctions(ctx context.Context, wh string, ns catalog.Namespace, _ catalog.PageRequest) (catalog.Page[catalog.TableIdent], error) {
	unlock, err := f.enter(ctx, wh, "functions "+ns.String())
	defer unlock()
	return catalog.Page[catalog.TableIdent]{Items: []catalog.TableIdent{{Namespace: ns, Name: "f"}}}, err
}

func (f *fakeCatalog) LoadFunction(ctx context.Context, wh string, id catalog.TableIdent) (json.RawMessage, error) {
	unlock, err := f.enter(ctx, wh, "function "+id.String())
	defer unlock()
	if err == nil && id.Name != "f" {
		err = catalog.Errorf(catalog.KindNoSuchFunction, "Function does not exist: %s", id)
	}
	return json.RawMessage(`{"function-uuid":"x"}`), err
}

// fakePlanner knows one plan, p, with one page, k.
type fakePlanner struct{ *fakeCatalog }

func (f fakePlanner) Plan(ctx context.Context, wh string, id catalog.TableIdent, r scan.Request) ([]byte, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("plan %s %s", id, r.Filter))
	defer unlock()
	return []byte(`{"status":"submitted","plan-id":"p"}`), err
}

func (f fakePlanner) Result(ctx context.Context, wh string, id catalog.TableIdent, plan string) (scan.Result, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("plan of %s: %s", id, plan))
	defer unlock()
	return scan.Result{Body: []byte(`{"status":"completed","plan-tasks":["k"]}`)}, err
}

func (f fakePlanner) Cancel(ctx context.Context, wh string, id catalog.TableIdent, plan string) error {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("cancel plan of %s: %s", id, plan))
	defer unlock()
	return err
}

func (f fakePlanner) Tasks(ctx context.Context, wh string, id catalog.TableIdent, task string) ([]byte, error) {
	unlock, err := f.enter(ctx, wh, fmt.Sprintf("tasks of %s: %s", id, task))
	defer unlock()
	return []byte(`{"file-scan-tasks":[]}`), err
}
