package mv

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/catalog/metadata"
	"github.com/catalogd/catalogd/mv/plan"
	"github.com/catalogd/catalogd/mv/sqltext"
)

// createOptions is [CreateOptions] on its way through the catalog.
type createOptions struct{ CreateOptions }

// place finds or makes the storage table.
func (d *definer) place(ctx context.Context) error {
	row, ok, err := d.guard.objects.object(ctx, KeyOf(d.def.Warehouse, d.def.Storage))
	if err != nil {
		return err
	}
	if !ok {
		return d.createStorage()
	}
	if row.Type != catalog.TypeTable {
		return catalog.Errorf(catalog.KindConflict, "storage table %s is a view", d.def.Storage)
	}
	if row.StorageOf == d.def.ViewUUID {
		return d.keepStorage(ctx, row)
	}
	return d.adoptStorage(ctx, row)
}

// createStorage adds a new, empty storage table to the view's transaction.
func (d *definer) createStorage() error {
	schema, err := schemaJSON(d.def.Columns)
	if err != nil {
		return err
	}
	spec, err := d.partitionSpec()
	if err != nil {
		return err
	}
	order, err := sortOrder(d.opts.Sort, d.def.Columns)
	if err != nil {
		return err
	}
	props := map[string]string{"format-version": "2", "commit.retry.num-retries": "4"}
	maps.Copy(props, d.opts.Properties)
	location := d.opts.Location
	if location == "" {
		location = strings.TrimRight(d.p.View.Location(), "/") + "/" + storageFolder + uuid.NewString()
	}
	t, err := metadata.NewTable(metadata.NewTableRequest{
		UUID: uuid.NewString(), Location: location, Schema: schema, PartitionSpec: spec, WriteOrder: order,
		Properties: props, Now: d.guard.now(),
	})
	if err != nil {
		return ErrInput("storage table %s: %s", d.def.Storage, err.Error())
	}
	if err := d.columnIDs(t); err != nil {
		return err
	}
	d.def.StorageUUID = t.UUID()
	d.p.Extra = append(d.p.Extra, catalog.Proposed{
		Op: catalog.OpCreate, Table: t,
		Row: catalog.Pointer{Warehouse: d.def.Warehouse, Ident: d.def.Storage, Type: catalog.TypeTable, StorageOf: d.def.ViewUUID},
	})
	return nil
}

// columnIDs takes the field ids from the storage table's schema.
func (d *definer) columnIDs(t *metadata.Table) error {
	fields, err := schemaFields(t.CurrentSchema())
	if err != nil {
		return err
	}
	for i := range d.def.Columns {
		d.def.Columns[i].ID = fields[i].ID
		d.def.Columns[i].Type = typeText(fields[i].Type) // nested types carry field ids
	}
	return nil
}

// keepStorage is a view that is replaced: its storage stays. Rows that still answer the
// query are kept by a snapshot without data that names the new version; another query
// makes them invalid until the next refresh, which also changes the schema.
func (d *definer) keepStorage(ctx context.Context, row catalog.Pointer) error {
	d.def.StorageUUID = row.UUID
	doc, err := d.guard.objects.Document(ctx, row)
	if err != nil {
		return err
	}
	t, err := metadata.ParseTable(doc)
	if err != nil {
		return catalog.Errorf(catalog.KindInternal, "metadata of %s cannot be read", row.Ident).Because(err)
	}
	if err := d.evolvedIDs(t); err != nil {
		return err
	}
	if d.p.Base == nil || !d.sameMeaning(t) {
		return nil
	}
	return d.bless(ctx, row, doc, t)
}

// evolvedIDs keeps the field id of a column whose name and type are the same, and gives
// the others ids that were never used.
func (d *definer) evolvedIDs(t *metadata.Table) error {
	fields, err := schemaFields(t.CurrentSchema())
	if err != nil {
		return err
	}
	old := map[string]field{}
	for _, f := range fields {
		old[f.Name] = f
	}
	next := t.LastColumnID()
	for i, c := range d.def.Columns {
		if f, ok := old[c.Name]; ok && sameType(typeText(f.Type), c.Type) {
			d.def.Columns[i].ID, d.def.Columns[i].Type = f.ID, typeText(f.Type)
			continue
		}
		next++
		d.def.Columns[i].ID = next
	}
	return nil
}

// sameMeaning reports whether the replaced view returns what the stored rows are: the
// same tokens, read in the same context, into the same columns.
func (d *definer) sameMeaning(t *metadata.Table) bool {
	before, ok := representation(d.p.Base.CurrentVersion(), d.def.Dialect)
	if !ok || !before.DefaultNS.Equal(d.def.DefaultNS) || before.Catalog != d.def.DefaultCat {
		return false
	}
	if zone, ok := d.p.Base.Property(PropTimeZone); ok != (d.def.TimeZone != "UTC") || (ok && zone != d.def.TimeZone) {
		return false
	}
	fields, err := schemaFields(t.CurrentSchema())
	if err != nil || len(fields) != len(d.def.Columns) {
		return false
	}
	for i, f := range fields {
		if c := d.def.Columns[i]; c.ID != f.ID || c.Name != f.Name {
			return false
		}
	}
	return sameTokens(before.Dialect, before.SQL, d.def.SQL)
}

// sameTokens compares two texts without white space and comments.
func sameTokens(dialect Dialect, a, b string) bool {
	x, errX := significant(dialect, a)
	y, errY := significant(dialect, b)
	if errX != nil || errY != nil || len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Kind != y[i].Kind || x[i].Value != y[i].Value || x[i].Prefix != y[i].Prefix {
			return false
		}
	}
	return true
}

func significant(dialect Dialect, sql string) ([]sqltext.Token, error) {
	all, err := sqltext.Lex(sqltext.Dialect(dialect), sql)
	if err != nil {
		return nil, err
	}
	var out []sqltext.Token
	for _, t := range all {
		if t.Kind != sqltext.TokenSpace && t.Kind != sqltext.TokenComment {
			out = append(out, t)
		}
	}
	for len(out) > 1 && out[len(out)-2].Kind == sqltext.TokenOp && out[len(out)-2].Value == ";" {
		out = append(out[:len(out)-2], out[len(out)-1])
	}
	return out, nil
}

// bless adds the snapshot without data that says: these rows answer the new version.
func (d *definer) bless(ctx context.Context, row catalog.Pointer, doc []byte, t *metadata.Table) error {
	rec, err := RecordedState(t)
	if err != nil || rec == nil || d.p.BaseRow == nil || rec.ViewVersionID != d.p.BaseRow.ViewVersionID {
		return nil //nolint:nilerr // an unreadable state is not kept: the next refresh rebuilds
	}
	if rec.ViewVersionID == d.version.ID {
		return nil // only properties changed
	}
	rec.ViewVersionID = d.version.ID
	summary := maps.Clone(RecordedSummary(t))
	encoded, err := EncodeRefreshState(*rec, StateOptions{Older: true})
	if err != nil {
		return fmt.Errorf("keep storage: %w", err)
	}
	maps.Copy(summary, encoded)
	staged, err := d.guard.publisher.NoData(ctx, Publication{
		Document: doc, Head: row.SnapshotID, Summary: ownSummary(summary), Keep: keepSnapshots,
	})
	if err != nil {
		return err
	}
	next := t.Clone()
	if err := next.Apply(staged.Updates, metadata.ApplyContext{Now: d.guard.now(), PreviousLocation: row.MetadataLocation}); err != nil {
		return fmt.Errorf("keep storage: %w", err)
	}
	d.keeps = true
	d.p.Extra = append(d.p.Extra, catalog.Proposed{Op: catalog.OpSwap, Row: row, From: row.MetadataLocation, Table: next})
	return nil
}

// adoptStorage takes an existing table that a client named as the storage table.
func (d *definer) adoptStorage(ctx context.Context, row catalog.Pointer) error {
	refuse := func(format string, args ...any) error {
		return catalog.Errorf(catalog.KindConflict, "table %s cannot become the storage table of %s: %s", row.Ident, d.p.Ident, fmt.Sprintf(format, args...))
	}
	if row.StorageOf != "" {
		return refuse("it belongs to another materialized view")
	}
	if row.SnapshotID != NoSnapshot {
		return refuse("it has snapshots; a storage table must be empty at first")
	}
	doc, err := d.guard.objects.Document(ctx, row)
	if err != nil {
		return err
	}
	t, err := metadata.ParseTable(doc)
	if err != nil {
		return catalog.Errorf(catalog.KindInternal, "metadata of %s cannot be read", row.Ident).Because(err)
	}
	if t.FormatVersion() != 2 {
		return refuse("its format version is %d, catalogd publishes to version 2", t.FormatVersion())
	}
	fields, err := schemaFields(t.CurrentSchema())
	if err != nil {
		return err
	}
	if len(fields) != len(d.def.Columns) {
		return refuse("it has %d columns, the view has %d", len(fields), len(d.def.Columns))
	}
	for i, f := range fields {
		c := &d.def.Columns[i]
		if f.Name != c.Name || !castable(c.Type, typeText(f.Type)) {
			return refuse("its column %d is %s %s, the view's is %s %s", i+1, f.Name, typeText(f.Type), c.Name, c.Type)
		}
		if f.Required {
			return refuse("its column %s is required, a query may return nulls", f.Name)
		}
		c.ID, c.Type = f.ID, typeText(f.Type)
	}
	update, err := json.Marshal(map[string]any{"action": "set-properties", "updates": map[string]string{"catalogd.storage-of": d.p.Ident.String()}})
	if err != nil {
		return fmt.Errorf("adopt storage: %w", err)
	}
	if err := t.Apply([]json.RawMessage{update}, metadata.ApplyContext{Now: d.guard.now(), PreviousLocation: row.MetadataLocation}); err != nil {
		return fmt.Errorf("adopt storage: %w", err)
	}
	d.def.StorageUUID = row.UUID
	from := row.MetadataLocation
	row.StorageOf = d.def.ViewUUID
	d.p.Extra = append(d.p.Extra, catalog.Proposed{Op: catalog.OpSwap, Row: row, From: from, Table: t})
	return nil
}

// partitionSpec partitions the storage table by the unit in which it is recomputed, never
// finer than needed: day for buckets below an hour, month up to a day, year above.
func (d *definer) partitionSpec() (json.RawMessage, error) {
	fields := d.opts.Partition
	if len(fields) == 0 {
		b, reason := bucketOf(d.found, d.def)
		if reason != "" {
			return nil, nil
		}
		fields = []string{b.partition()}
	}
	spec, err := plan.ParsePartition(fields, columnNames(d.def.Columns))
	if err != nil {
		return nil, ErrInput("storage partitioning: %s", err.Error())
	}
	return spec.JSON(ids(d.def.Columns))
}

func sortOrder(fields []string, columns []Column) (json.RawMessage, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	order, err := plan.ParseSort(fields, columnNames(columns))
	if err != nil {
		return nil, ErrInput("storage sort order: %s", err.Error())
	}
	return order.JSON(ids(columns))
}

func columnNames(columns []Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

func ids(columns []Column) map[string]int {
	out := make(map[string]int, len(columns))
	for _, c := range columns {
		out[c.Name] = c.ID
	}
	return out
}
