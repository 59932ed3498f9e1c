package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catalogd/catalogd/catalog"
)

// keepDropped makes the warehouse keep dropped objects for an hour.
func (f *fixture) keepDropped() {
	f.Helper()
	d := time.Hour
	if err := f.UpdateWarehouse(f.Context(), Warehouse, catalog.WarehouseUpdate{SoftDelete: &d}); err != nil {
		f.Fatalf("UpdateWarehouse = %v", err)
	}
}

func drop(c catalog.Change) catalog.Change {
	return catalog.Change{Op: catalog.OpDrop, Pointer: c.Pointer}
}

func undrop(d catalog.Dropped, name string) catalog.Change {
	p := d.Pointer
	p.Ident.Name = name
	return catalog.Change{Op: catalog.OpCreate, Pointer: p, Undrop: d.ID}
}

func (f *fixture) dropped(c catalog.Change) []catalog.Dropped {
	f.Helper()
	found, err := f.FindDropped(f.Context(), Warehouse, catalog.DroppedMatch{Ident: c.Pointer.Ident})
	if err != nil {
		f.Fatalf("FindDropped = %v", err)
	}
	return found
}

func claimed(c catalog.Change) catalog.Change {
	c.Claim = true
	return c
}

func testSoftDelete(t *testing.T, f *fixture) {
	f.keepDropped()
	ns := f.namespace("ns")
	c := swap(table(ns, "t", "m0"), "m1")
	f.commit(table(ns, "t", "m0"))
	c.From = "m0"
	f.commit(c)
	f.commit(drop(c))
	f.missing(c)
	found := f.dropped(c)
	if len(found) != 1 {
		t.Fatalf("FindDropped = %v, want one", found)
	}
	d := found[0]
	d.Pointer.ChangedAt = c.Pointer.ChangedAt
	if diff := cmp.Diff(c.Pointer, d.Pointer); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	if got := d.ExpiresAt.Sub(d.DroppedAt); got != time.Hour || d.Purge {
		t.Errorf("kept for %s, purge %v, want an hour and no purge", got, d.Purge)
	}
	// The name is free at once, the location is not.
	next := claimed(table(ns, "t", "n0"))
	f.refuse(catalog.KindForbidden, next)
	next.Pointer.Location = "file:///w/elsewhere"
	f.commit(next)
	f.refuse(catalog.KindAlreadyExists, undrop(d, "t"))
	f.refuse(catalog.KindNoSuchNamespace, catalog.Change{
		Op: catalog.OpCreate, Undrop: d.ID,
		Pointer: catalog.Pointer{Warehouse: Warehouse, Type: catalog.TypeTable, Ident: catalog.TableIdent{Namespace: catalog.Namespace{"no"}, Name: "t"}},
	})
	f.commit(undrop(d, "back"))
	back := c
	back.Pointer.Ident.Name = "back"
	l, err := f.Load(t.Context(), Warehouse, back.Pointer.Ident, catalog.TypeTable, "")
	if err != nil {
		t.Fatal(err)
	}
	l.Pointer.ChangedAt = c.Pointer.ChangedAt
	if diff := cmp.Diff(back.Pointer, l.Pointer); diff != "" {
		t.Errorf("back (-want +got):\n%s", diff)
	}
	if l.Document == nil {
		t.Error("the document did not come back")
	}
	f.refuse(catalog.KindNotFound, undrop(d, "again"))
	if left := f.dropped(c); len(left) != 0 {
		t.Errorf("after the undrop %v is left", left)
	}
}

func testSoftDeleteOff(t *testing.T, f *fixture) {
	ns := f.namespace("ns")
	a, b := table(ns, "a", "a0"), table(ns, "b", "b0")
	f.commit(a, b)
	f.commit(drop(a))
	purged := drop(b)
	purged.Purge = true
	f.commit(purged)
	for _, c := range []catalog.Change{a, b} {
		f.missing(c)
		if found := f.dropped(c); len(found) != 0 {
			t.Errorf("%v can come back, want a drop that is final", found)
		}
	}
	f.commit(claimed(a))                        // the same table once more
	f.refuse(catalog.KindForbidden, claimed(b)) // its files are being deleted
	other := claimed(table(ns, "c", "c0"))      // or something inside
	other.Pointer.Location = b.Pointer.Location + "/x"
	f.refuse(catalog.KindForbidden, other)
}

func testForgottenDrop(t *testing.T, f *fixture) {
	f.keepDropped()
	c := table(f.namespace("ns"), "t", "m0")
	f.commit(c)
	forget := drop(c)
	forget.Forget = true
	f.commit(forget)
	if found := f.dropped(c); len(found) != 0 {
		t.Errorf("%v can come back, want nothing", found)
	}
}

// testUndropRegistered: a table that was registered again is back already.
func testUndropRegistered(t *testing.T, f *fixture) {
	f.keepDropped()
	ns := f.namespace("ns")
	c := table(ns, "t", "m0")
	f.commit(c)
	f.commit(drop(c))
	again := claimed(c)
	again.Pointer.Ident.Name = "again"
	f.commit(again)
	d := f.dropped(c)
	if len(d) != 1 {
		t.Fatalf("FindDropped = %v, want one", d)
	}
	f.refuse(catalog.KindConflict, undrop(d[0], "t"))
	f.missing(c)
}

func testExpireDropped(t *testing.T, f *fixture) {
	f.keepDropped()
	ns := f.namespace("ns")
	for _, purge := range []bool{false, true} {
		c := table(ns, fmt.Sprintf("t%v", purge), fmt.Sprintf("m%v", purge))
		f.commit(c)
		f.commit(drop(c))
		d := f.dropped(c)[0]
		if err := f.ExpireDropped(t.Context(), Warehouse, d.ID, purge); err != nil {
			t.Fatal(err)
		}
		if left := f.dropped(c); len(left) != 0 {
			t.Errorf("%v can come back after it expired", left)
		}
		f.refuse(catalog.KindNotFound, undrop(d, "back"))
		if err := f.ExpireDropped(t.Context(), Warehouse, d.ID, purge); catalog.KindOf(err) != catalog.KindNotFound {
			t.Errorf("ExpireDropped again = %v, want not found", err)
		}
		if purge {
			f.refuse(catalog.KindForbidden, claimed(c))
		} else {
			f.commit(claimed(c))
		}
	}
}

// testUndropOnce: of many who undrop the same object under different names one wins.
func testUndropOnce(t *testing.T, f *fixture) {
	f.keepDropped()
	c := table(f.namespace("ns"), "t", "m0")
	f.commit(c)
	f.commit(drop(c))
	d := f.dropped(c)[0]
	const n = 8
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			errs[i] = f.Commit(t.Context(), []catalog.Change{undrop(d, fmt.Sprintf("t%d", i))})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case catalog.KindOf(err) != catalog.KindNotFound:
			t.Errorf("Commit = %v, want not found", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d brought it back, want one", won, n)
	}
}

// testUndropRacesRegister: of an undrop and a register of the same table at the same time
// one wins.
func testUndropRacesRegister(t *testing.T, f *fixture) {
	f.keepDropped()
	ns := f.namespace("ns")
	for i := range 20 {
		c := table(ns, fmt.Sprintf("t%d", i), fmt.Sprintf("m%d", i))
		f.commit(c)
		f.commit(drop(c))
		back := undrop(f.dropped(c)[0], c.Pointer.Ident.Name)
		again := claimed(c)
		again.Pointer.Ident.Name += "again"
		var undropped, registered error
		var wg sync.WaitGroup
		wg.Go(func() { undropped = f.Commit(t.Context(), []catalog.Change{back}) })
		wg.Go(func() { registered = f.Commit(t.Context(), []catalog.Change{again}) })
		wg.Wait()
		switch {
		case undropped == nil && catalog.KindOf(registered) == catalog.KindForbidden:
			f.missing(again)
		case registered == nil && catalog.KindOf(undropped) == catalog.KindConflict:
			f.missing(c)
		default:
			t.Errorf("round %d: undrop = %v, register = %v, want that one is refused", i, undropped, registered)
		}
	}
}

func testDroppedPages(t *testing.T, f *fixture) {
	f.keepDropped()
	ns, other := f.namespace("ns"), f.namespace("other")
	v := view(ns, "mv", "v0")
	storage := table(ns, "mv__storage", "s0")
	storage.Pointer.StorageOf = v.Pointer.UUID
	f.commit(v, storage)
	f.commit(drop(v), drop(storage))
	for i := range 5 {
		c := table(ns, "same", fmt.Sprintf("m%d", i))
		f.commit(c)
		f.commit(drop(c))
	}
	c := table(other, "t", "o0")
	f.commit(c)
	f.commit(drop(c))
	var names []string
	p := catalog.DroppedPage{PageRequest: catalog.PageRequest{Size: 2}, Namespace: ns}
	for {
		page, err := f.ListDropped(t.Context(), Warehouse, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Items {
			names = append(names, d.Pointer.Ident.Name+" "+d.Pointer.MetadataLocation)
		}
		if page.Next == "" {
			break
		}
		p.After = page.Next
	}
	want := []string{"same m4", "same m3", "same m2", "same m1", "same m0", "mv v0"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	all, err := f.ListDropped(t.Context(), Warehouse, catalog.DroppedPage{PageRequest: catalog.PageRequest{StorageTables: true}})
	if err != nil || len(all.Items) != 8 {
		t.Errorf("ListDropped = %d objects, %v, want 8 with the storage table", len(all.Items), err)
	}
	d := f.dropped(v)[0]
	with, err := f.FindDropped(t.Context(), Warehouse, catalog.DroppedMatch{StorageOf: &d})
	if err != nil || len(with) != 1 || with[0].Pointer.UUID != storage.Pointer.UUID {
		t.Errorf("FindDropped(storage of the view) = %v, %v", with, err)
	}
	if _, err := f.ListDropped(t.Context(), "nowhere", catalog.DroppedPage{}); catalog.KindOf(err) != catalog.KindNoSuchWarehouse {
		t.Errorf("ListDropped of an unknown warehouse = %v", err)
	}
}

func testProtected(t *testing.T, f *fixture) {
	ns := f.namespace("ns")
	tbl, v := table(ns, "t", "t0"), view(ns, "v", "v0")
	f.commit(tbl, v)
	space := catalog.Target{Type: catalog.TypeNamespace, Ident: catalog.TableIdent{Namespace: ns}}
	targets := []catalog.Target{{Type: catalog.TypeTable, Ident: tbl.Pointer.Ident}, {Type: catalog.TypeView, Ident: v.Pointer.Ident}, space}
	set := func(protected bool) {
		t.Helper()
		for _, target := range targets {
			if err := f.SetProtected(t.Context(), Warehouse, target, protected); err != nil {
				t.Fatalf("SetProtected(%v) = %v", target, err)
			}
			if got, err := f.Protected(t.Context(), Warehouse, target); err != nil || got != protected {
				t.Errorf("Protected(%v) = %v, %v, want %v", target, got, err, protected)
			}
		}
	}
	set(true)
	purge := drop(tbl)
	purge.Purge = true
	forget := drop(tbl)
	forget.Forget = true
	for _, c := range []catalog.Change{drop(tbl), purge, forget, drop(v)} {
		f.refuse(catalog.KindConflict, c)
	}
	f.refuse(catalog.KindConflict, drop(v), table(ns, "with", "w0")) // all or nothing
	if got := f.location(tbl) + f.location(v); got != "t0v0" {
		t.Errorf("locations = %s after refused drops", got)
	}
	// What is protected can still be changed, and keeps its protection.
	f.commit(swap(tbl, "t1"))
	f.refuse(catalog.KindConflict, drop(tbl))
	f.commit(catalog.Change{Op: catalog.OpRename, Pointer: tbl.Pointer, To: catalog.TableIdent{Namespace: ns, Name: "renamed"}})
	tbl.Pointer.Ident.Name = "renamed"
	targets[0].Ident.Name = "renamed"
	f.refuse(catalog.KindConflict, drop(tbl))
	set(false)
	set(false)
	f.commit(drop(tbl), drop(v))
	set2 := f.SetProtected(t.Context(), Warehouse, targets[0], true)
	if catalog.KindOf(set2) != catalog.KindNoSuchTable {
		t.Errorf("SetProtected of a dropped table = %v", set2)
	}
	if err := f.SetProtected(t.Context(), Warehouse, space, true); err != nil {
		t.Fatal(err)
	}
	if err := f.DropNamespace(t.Context(), Warehouse, ns); catalog.KindOf(err) != catalog.KindConflict {
		t.Errorf("DropNamespace of a protected one = %v, want a conflict", err)
	}
	if err := f.SetProtected(t.Context(), Warehouse, space, false); err != nil {
		t.Fatal(err)
	}
	if err := f.DropNamespace(t.Context(), Warehouse, ns); err != nil {
		t.Errorf("DropNamespace = %v", err)
	}
	if _, err := f.Protected(t.Context(), Warehouse, space); catalog.KindOf(err) != catalog.KindNoSuchNamespace {
		t.Errorf("Protected of a dropped namespace = %v", err)
	}
}

func testWarehouses(t *testing.T, f *fixture) {
	ctx := t.Context()
	create := func(name, location string) error {
		return f.CreateWarehouse(ctx, catalog.WarehouseSettings{Warehouse: catalog.Warehouse{Name: name, Location: location}, SoftDelete: time.Minute})
	}
	main, err := f.WarehouseSettings(ctx, Warehouse)
	if err != nil || !main.Default || main.SoftDelete != 0 {
		t.Fatalf("WarehouseSettings = %+v, %v, want the default one, which keeps nothing", main, err)
	}
	for _, location := range []string{main.Location, main.Location + "/inside", "file:/w/inside/more"} {
		if err := create("other", location); catalog.KindOf(err) != catalog.KindConflict {
			t.Errorf("CreateWarehouse at %s = %v, want a conflict", location, err)
		}
	}
	if err := create("other", "file:///wide"); err != nil { // begins with the same letters
		t.Fatal(err)
	}
	if err := create("other", "file:///elsewhere"); catalog.KindOf(err) != catalog.KindAlreadyExists {
		t.Errorf("CreateWarehouse again = %v", err)
	}
	if err := create("around", "file:///"); catalog.KindOf(err) != catalog.KindConflict {
		t.Errorf("CreateWarehouse around all others = %v, want a conflict", err)
	}
	all, err := f.Warehouses(ctx)
	if err != nil || len(all) != 2 || all[1].Name != "other" || all[1].SoftDelete != time.Minute || all[1].Default || all[1].CreatedAt.IsZero() {
		t.Errorf("Warehouses = %+v, %v", all, err)
	}
	yes, no := true, false
	location := "file:///moved"
	if err := f.UpdateWarehouse(ctx, "other", catalog.WarehouseUpdate{Default: true, Protected: &yes, Location: &location}); err != nil {
		t.Fatal(err)
	}
	if w, err := f.WarehouseSettings(ctx, ""); err != nil || w.Name != "other" || w.Location != location || !w.Protected || w.SoftDelete != time.Minute {
		t.Errorf("the default warehouse = %+v, %v", w, err)
	}
	if err := f.CreateNamespace(ctx, "other", catalog.Namespace{"ns"}, nil); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		if err := f.DeleteWarehouse(ctx, "other"); catalog.KindOf(err) != catalog.KindConflict {
			t.Errorf("DeleteWarehouse of one that is %s = %v, want a conflict", what, err)
		}
	}
	refused("protected")
	if err := f.UpdateWarehouse(ctx, "other", catalog.WarehouseUpdate{Protected: &no}); err != nil {
		t.Fatal(err)
	}
	refused("the default one")
	if err := f.UpdateWarehouse(ctx, Warehouse, catalog.WarehouseUpdate{Default: true}); err != nil {
		t.Fatal(err)
	}
	refused("in use")
	if err := f.UpdateWarehouse(ctx, "other", catalog.WarehouseUpdate{Location: &main.Location}); catalog.KindOf(err) != catalog.KindConflict {
		t.Errorf("UpdateWarehouse to a taken location = %v", err)
	}
	if err := f.DropNamespace(ctx, "other", catalog.Namespace{"ns"}); err != nil {
		t.Fatal(err)
	}
	if err := f.DeleteWarehouse(ctx, "other"); err != nil {
		t.Errorf("DeleteWarehouse = %v", err)
	}
	for _, err := range []error{
		f.DeleteWarehouse(ctx, "other"), f.UpdateWarehouse(ctx, "other", catalog.WarehouseUpdate{}),
		f.CreateNamespace(ctx, "other", catalog.Namespace{"ns"}, nil),
	} {
		if catalog.KindOf(err) != catalog.KindNoSuchWarehouse {
			t.Errorf("a deleted warehouse: %v, want no such warehouse", err)
		}
	}
}
