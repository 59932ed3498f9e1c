package storetest

import (
	"crypto/sha256"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
)

func receipt(request string) *catalog.Receipt {
	return &catalog.Receipt{Key: uuid.Must(uuid.NewV7()), Digest: sha256.Sum256([]byte(request))}
}

// again is the receipt of the same request, sent once more.
func again(r *catalog.Receipt) *catalog.Receipt {
	return &catalog.Receipt{Key: r.Key, Digest: r.Digest}
}

// A receipt exists if and only if its change does.
func testReceipts(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	tbl := table(ns, "t", "file:///w/t/1")
	r := receipt("create t")
	r.Outcome.MetadataLocation = tbl.Pointer.MetadataLocation
	if _, found, err := f.Recall(f.Context(), Warehouse, r); found || err != nil {
		f.Fatalf("Recall before = %t, %v", found, err)
	}
	if err := f.Commit(catalog.WithReceipt(f.Context(), r), []catalog.Change{tbl}); err != nil || !r.Stored {
		f.Fatalf("Commit = %v, stored %t", err, r.Stored)
	}
	o, found, err := f.Recall(f.Context(), Warehouse, again(r))
	if want := (catalog.Outcome{MetadataLocation: tbl.Pointer.MetadataLocation}); err != nil || !found || cmp.Diff(want, o) != "" {
		f.Errorf("Recall = %+v, %t, %v", o, found, err)
	}
	// The same request reaches another replica before it can be recalled there.
	next := swap(tbl, "file:///w/t/2")
	if err := f.Commit(catalog.WithReceipt(f.Context(), again(r)), []catalog.Change{next}); !errors.Is(err, catalog.ErrRepeated) {
		f.Errorf("Commit of a repetition = %v, want ErrRepeated", err)
	}
	if got := f.location(tbl); got != tbl.Pointer.MetadataLocation {
		f.Errorf("the repetition changed the table to %s", got)
	}
	other := receipt("something else")
	other.Key = r.Key
	if _, _, err := f.Recall(f.Context(), Warehouse, other); catalog.KindOf(err) != catalog.KindInvalid {
		f.Errorf("Recall by another request = %v, want KindInvalid", err)
	}
	failed := receipt("create t again")
	if err := f.Commit(catalog.WithReceipt(f.Context(), failed), []catalog.Change{tbl}); catalog.KindOf(err) != catalog.KindAlreadyExists {
		f.Errorf("second create = %v", err)
	}
	if _, found, err := f.Recall(f.Context(), Warehouse, failed); found || err != nil || failed.Stored {
		f.Errorf("a failed change left a receipt: %t, %v", found, err)
	}
}

func testReceiptsOfRefusals(_ *testing.T, f *fixture) {
	r := receipt("drop nothing")
	r.Outcome.Err = catalog.Errorf(catalog.KindNoSuchTable, "Table does not exist: ns.t")
	if err := f.Remember(f.Context(), Warehouse, r); err != nil {
		f.Fatal(err)
	}
	o, found, err := f.Recall(f.Context(), Warehouse, again(r))
	if err != nil || !found || o.Err == nil || o.Err.Kind != catalog.KindNoSuchTable || o.Err.Msg != "Table does not exist: ns.t" {
		f.Errorf("Recall = %+v, %t, %v", o, found, err)
	}
	if err := f.Remember(f.Context(), Warehouse, again(r)); !errors.Is(err, catalog.ErrRepeated) {
		f.Errorf("second Remember = %v, want ErrRepeated", err)
	}
}

// Namespace operations keep receipts, too.
func testReceiptsOfNamespaces(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	r := receipt("update")
	missing, err := f.UpdateNamespace(catalog.WithReceipt(f.Context(), r), Warehouse, ns, []string{"gone"}, map[string]string{"a": "b"})
	if err != nil || len(missing) != 1 {
		f.Fatalf("UpdateNamespace = %v, %v", missing, err)
	}
	o, found, err := f.Recall(f.Context(), Warehouse, again(r))
	if err != nil || !found || string(o.Detail) != `["gone"]` {
		f.Errorf("Recall = %+v, %t, %v", o, found, err)
	}
	if _, err := f.UpdateNamespace(catalog.WithReceipt(f.Context(), again(r)), Warehouse, ns, nil, map[string]string{"a": "c"}); !errors.Is(err, catalog.ErrRepeated) {
		f.Errorf("repetition = %v, want ErrRepeated", err)
	}
	if props, err := f.Namespace(f.Context(), Warehouse, ns); err != nil || props["a"] != "b" {
		f.Errorf("properties %v, %v", props, err)
	}
}

// Of copies that arrive together, one makes the change.
func testReceiptsRace(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	r := receipt("create")
	var (
		group          sync.WaitGroup
		mu             sync.Mutex
		made, repeated int
	)
	for i := range 8 {
		group.Go(func() {
			tbl := table(ns, string(rune('a'+i)), "file:///w/x/"+uuid.NewString())
			err := f.Commit(catalog.WithReceipt(f.Context(), again(r)), []catalog.Change{tbl})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
			case errors.Is(err, catalog.ErrRepeated):
				repeated++
			default:
				f.Error(err)
			}
		})
	}
	group.Wait()
	if made != 1 || repeated != 7 {
		f.Errorf("%d changes were made and %d recognised, want 1 and 7", made, repeated)
	}
}

// Copies of a change to one row wait for each other at the row; those that come second find
// nothing to change, and a receipt.
func testReceiptsRaceForARow(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	for round := range 10 {
		tbl := table(ns, "t"+string(rune('a'+round)), "file:///w/x/"+uuid.NewString())
		f.commit(tbl)
		next := swap(tbl, "file:///w/x/"+uuid.NewString())
		drop := catalog.Change{Op: catalog.OpDrop, Pointer: next.Pointer}
		for _, change := range []catalog.Change{next, drop} {
			r := receipt(change.Pointer.MetadataLocation)
			var (
				group sync.WaitGroup
				errs  [4]error
			)
			for i := range errs {
				group.Go(func() {
					errs[i] = f.Commit(catalog.WithReceipt(f.Context(), again(r)), []catalog.Change{change})
				})
			}
			group.Wait()
			made := 0
			for _, err := range errs {
				if err == nil {
					made++
				} else if !errors.Is(err, catalog.ErrRepeated) {
					f.Errorf("a copy = %v, want ErrRepeated", err)
				}
			}
			if made != 1 {
				f.Errorf("the change was made %d times", made)
			}
		}
	}
}

// A table that is registered again brings its document along, also under the old name.
func testDocumentOfALocationIsTheLast(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	first := table(ns, "t", "file:///w/t/v1.metadata.json")
	f.commit(first)
	f.commit(catalog.Change{Op: catalog.OpDrop, Pointer: first.Pointer, Forget: true})
	second := table(ns, "t", "file:///w/t/v1.metadata.json")
	second.Document = catalog.NewDocument(second.Pointer.MetadataLocation, []byte(`{"new":true}`), nil)
	f.commit(second)
	l, err := f.Load(f.Context(), Warehouse, second.Pointer.Ident, catalog.TypeTable, "")
	if err != nil {
		f.Fatal(err)
	}
	if plain, err := l.Document.All.Plain(); err != nil || string(plain) != `{"new":true}` || !l.Document.Refs.Empty() {
		f.Errorf("document %s, %v", plain, err)
	}
}

// claiming is a table that takes its location.
func claiming(ns catalog.Namespace, name, location string) catalog.Change {
	c := table(ns, name, location+"/metadata/"+uuid.NewString())
	c.Pointer.Location, c.Claim = location, true
	return c
}

func testClaims(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	f.commit(claiming(ns, "t", "file:///w/a/b"))
	for _, taken := range []string{"file:///w/a/b", "file:/w/a/b/", "/w/a/b/c", "file:///w/a", "file:///w/a/b/c/d", "file:///w"} {
		f.refuse(catalog.KindForbidden, claiming(ns, "u", taken))
	}
	for i, free := range []string{"file:///w/a/bc", "file:///w/a/b-1", "file:///w/a/b.c", "file:///w/b", "s3://bucket/w/a/b"} {
		f.commit(claiming(ns, string(rune('A'+i)), free))
	}
	// Views own no data, and an object may keep what it has.
	v := view(ns, "v", "file:///w/a/b/v")
	v.Pointer.Location, v.Claim = "file:///w/a/b", true
	f.commit(v)
	moved := swap(claiming(ns, "A", "file:///w/a/bc"), "file:///w/moved")
	l, err := f.Load(f.Context(), Warehouse, moved.Pointer.Ident, catalog.TypeTable, "")
	if err != nil {
		f.Fatal(err)
	}
	moved.From, moved.Pointer.Location, moved.Claim = l.Pointer.MetadataLocation, "file:///w/a/bc/inside", true
	f.commit(moved) // into its own former place
	f.commit(claiming(ns, "x", "file:///w/a/bc/x"))
	f.refuse(catalog.KindForbidden, claiming(ns, "y", "file:///w/a/bc"))
	// Two of one transaction meet as well.
	f.refuse(catalog.KindForbidden, claiming(ns, "m", "file:///w/m"), claiming(ns, "n", "file:///w/m/n"))
}

// Of tables inside one another that are created at the same time, one side wins.
func testClaimsRace(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	for round := range 20 {
		root := "file:///w/race" + string(rune('a'+round))
		var (
			group sync.WaitGroup
			errs  [2]error
		)
		for i, location := range []string{root, root + "/x/y"} {
			group.Go(func() {
				errs[i] = f.Commit(f.Context(), []catalog.Change{claiming(ns, root[len("file:///w/"):]+string(rune('0'+i)), location)})
			})
		}
		group.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if catalog.KindOf(err) != catalog.KindForbidden {
				f.Errorf("claim = %v, want KindForbidden", err)
			}
		}
		if won != 1 {
			f.Fatalf("%d of two overlapping tables were created", won)
		}
	}
}

func testFunctions(_ *testing.T, f *fixture) {
	ns := f.namespace("ns")
	id := catalog.TableIdent{Namespace: ns, Name: "f"}
	if _, err := f.Function(f.Context(), Warehouse, id); catalog.KindOf(err) != catalog.KindNoSuchFunction {
		f.Errorf("Function = %v, want KindNoSuchFunction", err)
	}
	nowhere := catalog.TableIdent{Namespace: catalog.Namespace{"nowhere"}, Name: "f"}
	if _, err := f.Function(f.Context(), Warehouse, nowhere); catalog.KindOf(err) != catalog.KindNoSuchNamespace {
		f.Errorf("Function = %v, want KindNoSuchNamespace", err)
	}
	if err := f.PutFunction(f.Context(), Warehouse, nowhere, []byte(`{}`)); catalog.KindOf(err) != catalog.KindNoSuchNamespace {
		f.Errorf("PutFunction = %v, want KindNoSuchNamespace", err)
	}
	for _, text := range []string{`{"a": 1}`, `{"b":  12345678901234567890}`} {
		if err := f.PutFunction(f.Context(), Warehouse, id, []byte(text)); err != nil {
			f.Fatal(err)
		}
		if got, err := f.Function(f.Context(), Warehouse, id); err != nil || string(got) != text {
			f.Errorf("Function = %s, %v, want %s", got, err, text)
		}
	}
	page, err := f.ListFunctions(f.Context(), Warehouse, ns, catalog.PageRequest{})
	if err != nil || cmp.Diff([]string{"f"}, page.Items) != "" {
		f.Errorf("ListFunctions = %v, %v", page, err)
	}
	f.refuseNamespaceDrop(ns)
	if err := f.DropFunction(f.Context(), Warehouse, id); err != nil {
		f.Error(err)
	}
	if err := f.DropFunction(f.Context(), Warehouse, id); catalog.KindOf(err) != catalog.KindNoSuchFunction {
		f.Errorf("second DropFunction = %v, want KindNoSuchFunction", err)
	}
	if err := f.DropNamespace(f.Context(), Warehouse, ns); err != nil {
		f.Error(err)
	}
}

func (f *fixture) refuseNamespaceDrop(ns catalog.Namespace) {
	f.Helper()
	if err := f.DropNamespace(f.Context(), Warehouse, ns); catalog.KindOf(err) != catalog.KindNamespaceNotEmpty {
		f.Errorf("DropNamespace = %v, want KindNamespaceNotEmpty", err)
	}
}
