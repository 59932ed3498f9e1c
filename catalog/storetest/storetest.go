// Package storetest is the contract of catalog.Store in code: every implementation runs
// it against real storage.
package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
)

// Warehouse is the warehouse that every store under test must have.
const Warehouse = "main"

// Run runs the suite. open returns an empty store that has [Warehouse].
func Run(t *testing.T, open func(*testing.T) catalog.Store) {
	t.Helper()
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"Load", testLoad},
		{"LoadSkipsKnownDocument", testLoadKnown},
		{"CreateTaken", testCreateTaken},
		{"CreateWithoutNamespace", testCreateWithoutNamespace},
		{"SwapIsGuarded", testSwapGuarded},
		{"OneWinner", testOneWinner},
		{"ChangesAreAtomic", testAtomic},
		{"Drop", testDrop},
		{"Rename", testRename},
		{"TableAndViewNeverShareAName", testOneNameOneObject},
		{"Namespaces", testNamespaces},
		{"NamespaceProperties", testNamespaceProperties},
		{"OddNames", testOddNames},
		{"DropNamespace", testDropNamespace},
		{"DropNamespaceRacesCreate", testDropNamespaceRace},
		{"Pages", testPages},
		{"PagesStableUnderInserts", testPagesStable},
		{"StorageTablesAreHidden", testStorageHidden},
		{"Warehouse", testWarehouse},
		{"Warehouses", testWarehouses},
		{"SoftDelete", testSoftDelete},
		{"SoftDeleteOff", testSoftDeleteOff},
		{"ForgottenDrop", testForgottenDrop},
		{"UndropRegistered", testUndropRegistered},
		{"UndropOnce", testUndropOnce},
		{"UndropRacesRegister", testUndropRacesRegister},
		{"ExpireDropped", testExpireDropped},
		{"DroppedPages", testDroppedPages},
		{"Protected", testProtected},
		{"Receipts", testReceipts},
		{"ReceiptsOfRefusals", testReceiptsOfRefusals},
		{"ReceiptsOfNamespaces", testReceiptsOfNamespaces},
		{"ReceiptsRace", testReceiptsRace},
		{"ReceiptsRaceForARow", testReceiptsRaceForARow},
		{"DocumentOfALocationIsTheLast", testDocumentOfALocationIsTheLast},
		{"Claims", testClaims},
		{"ClaimsRace", testClaimsRace},
		{"Functions", testFunctions},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, &fixture{T: t, Store: open(t)})
		})
	}
}

// fixture is a store under test with shorthands that fail the test.
type fixture struct {
	*testing.T
	catalog.Store
}

func (f *fixture) namespace(levels ...string) catalog.Namespace {
	f.Helper()
	ns := catalog.Namespace(levels)
	if err := f.CreateNamespace(f.Context(), Warehouse, ns, nil); err != nil {
		f.Fatalf("CreateNamespace(%v) = %v", ns, err)
	}
	return ns
}

func table(ns catalog.Namespace, name, location string) catalog.Change {
	return catalog.Change{
		Op: catalog.OpCreate, Document: document(location),
		Pointer: catalog.Pointer{
			Warehouse: Warehouse, Ident: catalog.TableIdent{Namespace: ns, Name: name}, Type: catalog.TypeTable,
			UUID: uuid.NewString(), MetadataLocation: location, Location: "file:///w/" + name, SnapshotID: -1,
		},
	}
}

func view(ns catalog.Namespace, name, location string) catalog.Change {
	c := table(ns, name, location)
	c.Pointer.Type, c.Pointer.ViewVersionID = catalog.TypeView, 1
	return c
}

func document(location string) *catalog.Document {
	all := fmt.Sprintf(`{"location":%q,"snapshots":[1,2]}`, location)
	return catalog.NewDocument(location, []byte(all), []byte(strings.Replace(all, "[1,2]", "[2]", 1)))
}

func swap(c catalog.Change, to string) catalog.Change {
	c.Op, c.From, c.Document = catalog.OpSwap, c.Pointer.MetadataLocation, document(to)
	c.Pointer.MetadataLocation = to
	c.Pointer.SnapshotID = 7
	return c
}

func (f *fixture) commit(changes ...catalog.Change) {
	f.Helper()
	if err := f.Commit(f.Context(), changes); err != nil {
		f.Fatalf("Commit = %v", err)
	}
}

func (f *fixture) refuse(want catalog.Kind, changes ...catalog.Change) {
	f.Helper()
	if err := f.Commit(f.Context(), changes); catalog.KindOf(err) != want {
		f.Fatalf("Commit = %v, want kind %d", err, want)
	}
}

func (f *fixture) location(c catalog.Change) string {
	f.Helper()
	l, err := f.Load(f.Context(), Warehouse, c.Pointer.Ident, c.Pointer.Type, "")
	if err != nil {
		f.Fatalf("Load(%s) = %v", c.Pointer.Ident, err)
	}
	return l.Pointer.MetadataLocation
}

func (f *fixture) missing(c catalog.Change) {
	f.Helper()
	want := catalog.KindNoSuchTable
	if c.Pointer.Type == catalog.TypeView {
		want = catalog.KindNoSuchView
	}
	if _, err := f.Load(f.Context(), Warehouse, c.Pointer.Ident, c.Pointer.Type, ""); catalog.KindOf(err) != want {
		f.Fatalf("Load(%s) = %v, want kind %d", c.Pointer.Ident, err, want)
	}
}

func testLoad(t *testing.T, f *fixture) {
	c := table(f.namespace("ns"), "t", "m0")
	f.missing(c)
	f.commit(c)
	l, err := f.Load(t.Context(), Warehouse, c.Pointer.Ident, catalog.TypeTable, "")
	if err != nil {
		t.Fatal(err)
	}
	if l.Pointer.ChangedAt.IsZero() {
		t.Error("ChangedAt is zero")
	}
	l.Pointer.ChangedAt = c.Pointer.ChangedAt
	if diff := cmp.Diff(c.Pointer, l.Pointer); diff != "" {
		t.Errorf("pointer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.Document, l.Document, cmpopts.IgnoreUnexported(catalog.Document{})); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	plain, err := l.Document.All.Plain()
	if err != nil || !strings.Contains(string(plain), `"m0"`) {
		t.Errorf("Plain = %s, %v", plain, err)
	}
	docs, err := f.Documents(t.Context(), []string{"m0", "nowhere"})
	if err != nil || len(docs) != 1 {
		t.Fatalf("Documents = %v, %v, want the one that is stored", docs, err)
	}
	if diff := cmp.Diff(*c.Document, docs["m0"], cmpopts.IgnoreUnexported(catalog.Document{})); diff != "" {
		t.Errorf("Documents (-want +got):\n%s", diff)
	}
}

func testLoadKnown(t *testing.T, f *fixture) {
	c := table(f.namespace("ns"), "t", "m0")
	f.commit(c)
	for known, wantDocument := range map[string]bool{"m0": false, "m-1": true, catalog.NoDocument: false} {
		l, err := f.Load(t.Context(), Warehouse, c.Pointer.Ident, catalog.TypeTable, known)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Document != nil; got != wantDocument {
			t.Errorf("Load with known %q: document %v, want %v", known, got, wantDocument)
		}
	}
}

func testCreateTaken(_ *testing.T, f *fixture) {
	c := table(f.namespace("ns"), "t", "m0")
	f.commit(c)
	other := table(c.Pointer.Ident.Namespace, "t", "m1")
	f.refuse(catalog.KindAlreadyExists, other)
	if got := f.location(c); got != "m0" {
		f.Errorf("location = %s, want m0", got)
	}
}

func testCreateWithoutNamespace(_ *testing.T, f *fixture) {
	f.refuse(catalog.KindNoSuchNamespace, table(catalog.Namespace{"nowhere"}, "t", "m0"))
}

func testSwapGuarded(_ *testing.T, f *fixture) {
	c := table(f.namespace("ns"), "t", "m0")
	f.refuse(catalog.KindNoSuchTable, swap(c, "m1"))
	f.commit(c)
	stale := swap(c, "m9")
	stale.From = "m-1"
	f.refuse(catalog.KindCommitFailed, stale)
	if got := f.location(c); got != "m0" {
		f.Errorf("location after a refused swap = %s, want m0", got)
	}
	f.commit(swap(c, "m1"))
	if got := f.location(c); got != "m1" {
		f.Errorf("location = %s, want m1", got)
	}
}

// testOneWinner races commits from one base: one lands, the others change nothing.
func testOneWinner(t *testing.T, f *fixture) {
	const racers = 16
	c := table(f.namespace("ns"), "t", "m0")
	f.commit(c)
	errs := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() { errs[i] = f.Commit(t.Context(), []catalog.Change{swap(c, fmt.Sprintf("w%d", i))}) })
	}
	wg.Wait()
	winner := ""
	for i, err := range errs {
		switch {
		case err == nil && winner != "":
			t.Errorf("%d won as well", i)
		case err == nil:
			winner = fmt.Sprintf("w%d", i)
		case catalog.KindOf(err) != catalog.KindCommitFailed:
			t.Errorf("loser %d got %v", i, err)
		}
	}
	if got := f.location(c); got != winner {
		t.Errorf("location = %s, winner was %q", got, winner)
	}
}

func testAtomic(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	a, b := table(ns, "a", "a0"), table(ns, "b", "b0")
	f.commit(a)
	lost := swap(a, "a1")
	lost.From = "elsewhere"
	f.refuse(catalog.KindCommitFailed, b, lost)
	f.missing(b)
	f.refuse(catalog.KindAlreadyExists, b, a)
	f.missing(b)
	f.commit(b, swap(a, "a1"))
	if f.location(a) != "a1" || f.location(b) != "b0" {
		f.Error("not both changes are visible")
	}
}

func testDrop(_ *testing.T, f *fixture) {
	c := table(f.namespace("ns"), "t", "m0")
	drop := catalog.Change{Op: catalog.OpDrop, Pointer: c.Pointer}
	f.refuse(catalog.KindNoSuchTable, drop)
	f.commit(c)
	wrong := drop
	wrong.Pointer.Type = catalog.TypeView
	f.refuse(catalog.KindNoSuchView, wrong)
	stale := drop
	stale.From = "m-1"
	f.refuse(catalog.KindCommitFailed, stale)
	f.commit(drop)
	f.missing(c)
	f.commit(table(c.Pointer.Ident.Namespace, "t", "m1")) // the name is free again
}

func testRename(_ *testing.T, f *fixture) {
	ns, other := f.namespace("ns"), f.namespace("other")
	c, taken := table(ns, "t", "m0"), table(ns, "taken", "x0")
	f.commit(c, taken)
	rename := func(to catalog.TableIdent) catalog.Change {
		return catalog.Change{Op: catalog.OpRename, Pointer: c.Pointer, To: to}
	}
	f.refuse(catalog.KindAlreadyExists, rename(taken.Pointer.Ident))
	f.refuse(catalog.KindNoSuchNamespace, rename(catalog.TableIdent{Namespace: catalog.Namespace{"nowhere"}, Name: "t"}))
	moved := c
	moved.Pointer.Ident = catalog.TableIdent{Namespace: other, Name: "u"}
	f.commit(rename(moved.Pointer.Ident))
	f.missing(c)
	if got := f.location(moved); got != "m0" {
		f.Errorf("location = %s, want m0", got)
	}
	f.refuse(catalog.KindNoSuchTable, rename(taken.Pointer.Ident))
}

func testOneNameOneObject(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	f.commit(table(ns, "x", "m0"))
	f.refuse(catalog.KindAlreadyExists, view(ns, "x", "v0"))
	f.missing(view(ns, "x", ""))
	v := view(ns, "v", "v1")
	f.commit(v)
	f.refuse(catalog.KindAlreadyExists, table(ns, "v", "m1"))
	f.missing(table(ns, "v", ""))
}

func names(t *testing.T, p catalog.Page[catalog.Namespace]) []string {
	t.Helper()
	out := []string{}
	for _, ns := range p.Items {
		out = append(out, ns.String())
	}
	return out
}

func (f *fixture) children(parent ...string) []string {
	f.Helper()
	p, err := f.ListNamespaces(f.Context(), Warehouse, parent, catalog.PageRequest{})
	if err != nil {
		f.Fatalf("ListNamespaces(%v) = %v", parent, err)
	}
	return names(f.T, p)
}

func testNamespaces(t *testing.T, f *fixture) {
	f.namespace("b")
	f.namespace("a")
	f.namespace("a", "x")
	f.namespace("c", "deep", "er") // the levels in between come into being
	if diff := cmp.Diff([]string{"a", "b", "c"}, f.children()); diff != "" {
		t.Errorf("top level (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.x"}, f.children("a")); diff != "" {
		t.Errorf("below a (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c.deep"}, f.children("c")); diff != "" {
		t.Errorf("below c (-want +got):\n%s", diff)
	}
	err := f.CreateNamespace(t.Context(), Warehouse, catalog.Namespace{"a"}, nil)
	if catalog.KindOf(err) != catalog.KindAlreadyExists {
		t.Errorf("CreateNamespace of an existing one = %v", err)
	}
	for _, ns := range []catalog.Namespace{{"nowhere"}, {"a", "nowhere"}, {"ax"}} {
		if _, err := f.Namespace(t.Context(), Warehouse, ns); catalog.KindOf(err) != catalog.KindNoSuchNamespace {
			t.Errorf("Namespace(%v) = %v", ns, err)
		}
		if _, err := f.ListNamespaces(t.Context(), Warehouse, ns, catalog.PageRequest{}); catalog.KindOf(err) != catalog.KindNoSuchNamespace {
			t.Errorf("ListNamespaces(%v) = %v", ns, err)
		}
		if _, err := f.List(t.Context(), Warehouse, ns, catalog.TypeTable, catalog.PageRequest{}); catalog.KindOf(err) != catalog.KindNoSuchNamespace {
			t.Errorf("List(%v) = %v", ns, err)
		}
	}
}

func testNamespaceProperties(t *testing.T, f *fixture) {
	ns := catalog.Namespace{"ns"}
	props := map[string]string{"a": "1", "b": "", "owner": "é\n"}
	if err := f.CreateNamespace(t.Context(), Warehouse, ns, props); err != nil {
		t.Fatal(err)
	}
	get := func() map[string]string {
		got, err := f.Namespace(t.Context(), Warehouse, ns)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff(props, get()); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	missing, err := f.UpdateNamespace(t.Context(), Warehouse, ns, []string{"a", "owner", "zz"}, map[string]string{"b": "2", "c": "3"})
	if err != nil || !slices.Equal(missing, []string{"zz"}) {
		t.Errorf("UpdateNamespace = %v, %v, want missing zz", missing, err)
	}
	if diff := cmp.Diff(map[string]string{"b": "2", "c": "3"}, get()); diff != "" {
		t.Errorf("properties after update (-want +got):\n%s", diff)
	}
	if _, err := f.UpdateNamespace(t.Context(), Warehouse, ns, []string{"b", "c"}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{}, get()); diff != "" { // it exists without any
		t.Errorf("properties after removal (-want +got):\n%s", diff)
	}
	_, err = f.UpdateNamespace(t.Context(), Warehouse, catalog.Namespace{"nowhere"}, nil, map[string]string{"a": "b"})
	if catalog.KindOf(err) != catalog.KindNoSuchNamespace {
		t.Errorf("UpdateNamespace of a missing one = %v", err)
	}
}

func testOddNames(t *testing.T, f *fixture) {
	levels := []string{"a.b", "a b", "a/b", "a%2Eb", "a%b", "a\x1fb", "Ä€😀", "CASE", "case", `"q'`, "%", "%25", "-"}
	for _, level := range levels {
		ns := f.namespace(level)
		f.commit(table(ns, level, "m-"+level))
		sub := f.namespace(level, level)
		f.commit(table(sub, level, "s-"+level))
	}
	got := f.children()
	want := slices.Clone(levels)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	for _, level := range levels {
		if loc := f.location(table(catalog.Namespace{level}, level, "")); loc != "m-"+level {
			t.Errorf("table %q is at %q", level, loc)
		}
		if loc := f.location(table(catalog.Namespace{level, level}, level, "")); loc != "s-"+level {
			t.Errorf("nested table %q is at %q", level, loc)
		}
		if below := f.children(level); len(below) != 1 {
			t.Errorf("below %q: %q", level, below)
		}
	}
}

func testDropNamespace(t *testing.T, f *fixture) {
	ns := f.namespace("ns")
	f.namespace("ns", "sub")
	f.namespace("ns2") // shares a prefix, and must not matter
	drop := func(ns catalog.Namespace) catalog.Kind {
		return catalog.KindOf(f.DropNamespace(t.Context(), Warehouse, ns))
	}
	if k := drop(ns); k != catalog.KindNamespaceNotEmpty {
		t.Errorf("with a namespace below: kind %d", k)
	}
	if err := f.DropNamespace(t.Context(), Warehouse, catalog.Namespace{"ns", "sub"}); err != nil {
		t.Fatal(err)
	}
	v := view(ns, "v", "v0")
	f.commit(v)
	if k := drop(ns); k != catalog.KindNamespaceNotEmpty {
		t.Errorf("with a view: kind %d", k)
	}
	f.commit(catalog.Change{Op: catalog.OpDrop, Pointer: v.Pointer})
	if err := f.DropNamespace(t.Context(), Warehouse, ns); err != nil {
		t.Errorf("empty: %v", err)
	}
	if k := drop(ns); k != catalog.KindNoSuchNamespace {
		t.Errorf("twice: kind %d", k)
	}
	if diff := cmp.Diff([]string{"ns2"}, f.children()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// testDropNamespaceRace drops namespaces while tables are created in them: a table never
// ends up in a namespace that is gone.
func testDropNamespaceRace(t *testing.T, f *fixture) {
	for i := range 20 {
		ns := f.namespace(fmt.Sprintf("n%d", i))
		c := table(ns, "t", fmt.Sprintf("m%d", i))
		var created, dropped error
		var wg sync.WaitGroup
		wg.Go(func() { created = f.Commit(t.Context(), []catalog.Change{c}) })
		wg.Go(func() { dropped = f.DropNamespace(t.Context(), Warehouse, ns) })
		wg.Wait()
		if created == nil && dropped == nil {
			t.Fatalf("round %d: the table was created and its namespace dropped", i)
		}
		if created != nil && dropped != nil {
			t.Fatalf("round %d: neither happened: %v, %v", i, created, dropped)
		}
	}
}

func (f *fixture) pages(ns catalog.Namespace, size int, between func()) []string {
	f.Helper()
	var all []string
	token := ""
	for {
		p, err := f.List(f.Context(), Warehouse, ns, catalog.TypeTable, catalog.PageRequest{After: token, Size: size})
		if err != nil {
			f.Fatal(err)
		}
		if len(p.Items) > size {
			f.Fatalf("page of %d, asked for %d", len(p.Items), size)
		}
		all = append(all, p.Items...)
		if p.Next == "" {
			return all
		}
		token = p.Next
		between()
	}
}

func testPages(t *testing.T, f *fixture) {
	ns := f.namespace("ns")
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("t%d", i)
		want = append(want, name)
		f.commit(table(ns, name, "m"+name))
	}
	for _, size := range []int{1, 3, 7, 8} {
		if diff := cmp.Diff(want, f.pages(ns, size, func() {})); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", size, diff)
		}
	}
	p, err := f.List(t.Context(), Warehouse, ns, catalog.TypeTable, catalog.PageRequest{})
	if err != nil || !slices.Equal(p.Items, want) || p.Next != "" {
		t.Errorf("everything at once = %v %q, %v", p.Items, p.Next, err)
	}
}

func testPagesStable(t *testing.T, f *fixture) {
	ns := f.namespace("ns")
	for i := range 6 {
		f.commit(table(ns, fmt.Sprintf("t%d", i), fmt.Sprintf("m%d", i)))
	}
	n := 0
	got := f.pages(ns, 2, func() {
		n++
		f.commit(table(ns, fmt.Sprintf("a%d", n), fmt.Sprintf("ma%d", n))) // before every token
	})
	if want := []string{"t0", "t1", "t2", "t3", "t4", "t5"}; !slices.Equal(got, want) {
		t.Errorf("pages = %v, want each old name once: %v", got, want)
	}
}

func testStorageHidden(t *testing.T, f *fixture) {
	ns := f.namespace("ns")
	c := table(ns, "mv__storage", "m0")
	c.Pointer.StorageOf = uuid.NewString()
	f.commit(c)
	for storage, want := range map[bool]int{false: 0, true: 1} {
		p, err := f.List(t.Context(), Warehouse, ns, catalog.TypeTable, catalog.PageRequest{StorageTables: storage})
		if err != nil || len(p.Items) != want {
			t.Errorf("List(storage %v) = %v, %v, want %d", storage, p.Items, err, want)
		}
	}
	if got := f.location(c); got != "m0" {
		t.Errorf("by name: %s", got)
	}
	if err := f.DropNamespace(t.Context(), Warehouse, ns); err != nil {
		t.Errorf("DropNamespace with a storage table alone = %v", err)
	}
}

func testWarehouse(t *testing.T, f *fixture) {
	ctx := context.WithoutCancel(t.Context())
	w, err := f.Warehouse(ctx, "")
	if err != nil || w.Name != Warehouse {
		t.Errorf("the default warehouse = %v, %v", w, err)
	}
	if _, err := f.Warehouse(ctx, "nowhere"); catalog.KindOf(err) != catalog.KindNoSuchWarehouse {
		t.Errorf("Warehouse(nowhere) = %v", err)
	}
	id := catalog.TableIdent{Namespace: catalog.Namespace{"ns"}, Name: "t"}
	if _, err := f.Load(ctx, "nowhere", id, catalog.TypeTable, ""); catalog.KindOf(err) != catalog.KindNoSuchWarehouse {
		t.Errorf("Load in warehouse nowhere = %v", err)
	}
}
