package metadata

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxStalenessMember is the member of view metadata, and the property mirroring it, that
// says how old the data of a materialized view may be.
const maxStalenessMember = "max-staleness-ms"

// unbounded is what the property says where the member is null: any age will do.
const unbounded = "unbounded"

// View is one view metadata document. It is not safe for concurrent use while it is
// being changed; reading is.
type View struct {
	src     []byte
	doc     object
	changed bool

	uuid, location   string
	props            object
	schemas          []element
	versions         []element
	currentVersionID int
}

// Representation is one way to say what a view computes. SQL and Dialect are empty for
// types other than "sql", whose payload is in Raw.
type Representation struct {
	Type    string
	SQL     string
	Dialect string
	Raw     json.RawMessage
}

// StorageTable names the table that holds the rows of a materialized view.
type StorageTable struct {
	Namespace []string
	Name      string
	Catalog   string // empty: the view's own
}

// Version is one decoded version of a view.
type Version struct {
	ID               int
	SchemaID         int
	TimestampMS      int64
	Summary          map[string]string
	Representations  []Representation
	DefaultNamespace []string
	DefaultCatalog   string
	StorageTable     *StorageTable // nil: a plain view
	Raw              json.RawMessage
}

// ParseView reads a view metadata document. doc is retained and never modified, so the
// caller must not modify it either.
func ParseView(doc []byte) (*View, error) {
	o, err := parseObject(doc)
	if err != nil {
		return nil, at(err, "Cannot parse view metadata")
	}
	v := &View{src: doc, doc: o}
	if err := v.load(); err != nil {
		return nil, err
	}
	for i := range v.versions {
		ver, err := parseVersion(v.versions[i].raw)
		if err != nil {
			return nil, at(err, "version %d", v.versions[i].id)
		}
		if _, ok := find(v.schemas, ver.SchemaID); !ok {
			return nil, invalid("Cannot find schema with id %d of version %d in schemas", ver.SchemaID, ver.ID)
		}
	}
	if _, ok := find(v.versions, v.currentVersionID); !ok {
		return nil, invalid("Cannot find current version %d in view versions", v.currentVersionID)
	}
	return v, nil
}

func (v *View) load() (err error) {
	version, err := v.doc.integer("format-version")
	if err != nil {
		return err
	}
	if version != 1 {
		return invalid("Unsupported format version: %d", version)
	}
	if v.uuid, err = v.doc.str("view-uuid"); err != nil {
		return err
	}
	if v.location, err = v.doc.str("location"); err != nil {
		return err
	}
	if v.doc.raw("properties") != nil {
		if v.props, err = v.doc.stringMap("properties"); err != nil {
			return err
		}
	}
	if v.currentVersionID, err = v.doc.integer("current-version-id"); err != nil {
		return err
	}
	if v.schemas, err = v.loadList("schemas", "schema-id"); err != nil {
		return err
	}
	if v.versions, err = v.loadList("versions", "version-id"); err != nil {
		return err
	}
	_, err = v.doc.array("version-log")
	return err
}

func (v *View) loadList(name, idName string) ([]element, error) {
	raw := v.doc.raw(name)
	if raw == nil {
		return nil, invalid("Cannot parse missing field: %s", name)
	}
	list, err := parseElements(raw, idName)
	if err != nil {
		return nil, at(err, "%s", name)
	}
	seen := make(map[int64]bool, len(list))
	for i := range list {
		if seen[list[i].id] {
			return nil, invalid("Cannot parse %s: duplicate %s %d", name, idName, list[i].id)
		}
		seen[list[i].id] = true
	}
	return list, nil
}

// parseVersion decodes a view version. Its id may be missing while it is being created.
func parseVersion(raw json.RawMessage) (Version, error) {
	v := Version{Raw: raw}
	o, err := parseObject(raw)
	if err != nil {
		return v, err
	}
	if v.ID, err = o.optInt("version-id", 0); err != nil {
		return v, err
	}
	if v.SchemaID, err = o.integer("schema-id"); err != nil {
		return v, err
	}
	if v.TimestampMS, err = o.long("timestamp-ms"); err != nil {
		return v, err
	}
	summary, err := o.stringMap("summary")
	if err != nil {
		return v, err
	}
	v.Summary = summary.decodeStrings()
	if v.DefaultNamespace, err = o.strings("default-namespace"); err != nil {
		return v, err
	}
	if v.DefaultCatalog, err = o.optStr("default-catalog"); err != nil {
		return v, err
	}
	if v.StorageTable, err = parseStorageTable(o.raw("storage-table")); err != nil {
		return v, at(err, "storage-table")
	}
	list, err := o.array("representations")
	if err != nil {
		return v, err
	}
	for _, raw := range list {
		r, err := parseRepresentation(raw)
		if err != nil {
			return v, at(err, "representation")
		}
		v.Representations = append(v.Representations, r)
	}
	return v, nil
}

func parseRepresentation(raw json.RawMessage) (Representation, error) {
	r := Representation{Raw: raw}
	o, err := parseObject(raw)
	if err != nil {
		return r, err
	}
	if r.Type, err = o.str("type"); err != nil {
		return r, err
	}
	if !strings.EqualFold(r.Type, "sql") {
		return r, nil
	}
	r.Type = "sql"
	if r.SQL, err = o.str("sql"); err != nil {
		return r, err
	}
	r.Dialect, err = o.str("dialect")
	return r, err
}

func parseStorageTable(raw json.RawMessage) (*StorageTable, error) {
	if raw == nil {
		return nil, nil //nolint:nilnil // a plain view has none
	}
	o, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	st := &StorageTable{}
	if st.Namespace, err = o.strings("namespace"); err != nil {
		return nil, err
	}
	if st.Name, err = o.str("name"); err != nil {
		return nil, err
	}
	if st.Name == "" {
		return nil, invalid("Invalid storage table: its name is empty")
	}
	st.Catalog, err = o.optStr("catalog")
	return st, err
}

// checkNew validates what only a version that is being added must satisfy.
func (v *Version) checkNew() error {
	if len(v.Representations) == 0 {
		return invalid("Invalid view version: it has no representation")
	}
	seen := map[string]bool{}
	for _, r := range v.Representations {
		if r.Type != "sql" {
			continue
		}
		dialect := strings.ToLower(r.Dialect)
		if seen[dialect] {
			return invalid("Invalid view version: Cannot add multiple queries for dialect %s", dialect)
		}
		seen[dialect] = true
	}
	return nil
}

// dialects returns the dialects of the version's SQL, lower case and sorted.
func (v *Version) dialects() []string {
	var out []string
	for _, r := range v.Representations {
		if r.Type == "sql" {
			out = append(out, strings.ToLower(r.Dialect))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// versionMembers are the members of a view version that the format defines.
var versionMembers = []string{
	"version-id", "timestamp-ms", "schema-id", "summary", "representations", "default-catalog", "default-namespace", "storage-table",
}

// covers reports whether v may stand in for other: equal but for id and time, including
// the storage table, and holding every other member that other holds.
func (v *Version) covers(other *Version) bool {
	a, errA := parseObject(v.Raw)
	b, errB := parseObject(other.Raw)
	if errA != nil || errB != nil || v.SchemaID != other.SchemaID || v.DefaultCatalog != other.DefaultCatalog {
		return false
	}
	for _, name := range []string{"summary", "representations", "default-namespace", "storage-table"} {
		if !equalJSON(a.raw(name), b.raw(name)) {
			return false
		}
	}
	return coveredBy(b.without(versionMembers...), &a)
}

// Bytes returns the document: the very bytes that were parsed if nothing has changed.
func (v *View) Bytes() []byte { return v.src }

// Changed reports whether the document was changed since it was parsed. A new view has.
func (v *View) Changed() bool { return v.changed }

// Clone returns an independent copy that can be changed while v is still read.
func (v *View) Clone() *View {
	c := *v
	c.doc, c.props = v.doc.clone(), v.props.clone()
	c.schemas, c.versions = slices.Clone(v.schemas), slices.Clone(v.versions)
	return &c
}

// UUID identifies the view through renames.
func (v *View) UUID() string { return v.uuid }

// Location is the view's base location.
func (v *View) Location() string { return v.location }

// Properties returns a copy of the view's properties.
func (v *View) Properties() map[string]string { return v.props.decodeStrings() }

// Property returns one property.
func (v *View) Property(key string) (string, bool) { return stringMember(&v.props, key) }

// CurrentVersionID is the id of the current version.
func (v *View) CurrentVersionID() int { return v.currentVersionID }

// CurrentVersion is the current version, which every view has.
func (v *View) CurrentVersion() Version {
	ver, _ := v.Version(v.currentVersionID)
	return ver
}

// Version returns a version by id.
func (v *View) Version(id int) (Version, bool) {
	raw, ok := find(v.versions, id)
	if !ok {
		return Version{}, false
	}
	ver, err := parseVersion(raw)
	return ver, err == nil
}

// Versions returns all versions in document order.
func (v *View) Versions() []Version {
	out := make([]Version, 0, len(v.versions))
	for i := range v.versions {
		if ver, err := parseVersion(v.versions[i].raw); err == nil {
			out = append(out, ver)
		}
	}
	return out
}

// Schema returns a schema by id.
func (v *View) Schema(id int) (json.RawMessage, bool) { return find(v.schemas, id) }

// Member returns a top-level member of the document as it was written, nil if there is none.
func (v *View) Member(name string) json.RawMessage {
	if i := v.doc.index(name); i >= 0 {
		return v.doc.members[i].raw
	}
	return nil
}
