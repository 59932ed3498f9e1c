package publish

import (
	"context"
	"errors"
	"strings"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
	"github.com/catalogd/catalogd/mv/changes"
)

// Folder is where the data files of one refresh go: it belongs to that refresh alone, so
// that all of a lost or killed run can be removed without looking at the table.
func Folder(location, refreshID string) string {
	return strings.TrimRight(location, "/") + "/data/" + refreshID + "/"
}

// handle is the manifests that list the files of a [mv.Stored].
type handle map[string]bool

// Stored implements [mv.Publisher] for the head of the document's main branch.
func (p *Publisher) Stored(ctx context.Context, doc []byte, want *mv.Restriction) (mv.Stored, error) {
	found, err := changes.New(p.fs).Stored(ctx, doc, want)
	if err != nil {
		return mv.Stored{}, err
	}
	st := mv.Stored{Whole: true}
	manifests := make(handle)
	for _, f := range found {
		st.Files = append(st.Files, f.File)
		st.Bytes += f.File.Bytes
		st.Whole = st.Whole && f.Contained
		manifests[f.Manifest] = true
	}
	st.Handle = manifests
	return st, nil
}

// Discard implements [mv.Publisher]. It is for a run that lost its race or failed: after a
// commit whose outcome is unknown nothing may be discarded. folder is a run's own folder
// below data; anything that could hold more than one run is refused.
func (p *Publisher) Discard(ctx context.Context, written []string, folder string) error {
	var err error
	if folder != "" {
		parts := strings.Split(strings.TrimRight(folder, "/"), "/")
		if len(parts) < 3 || parts[len(parts)-2] != "data" || strings.Trim(parts[len(parts)-1], ".") == "" {
			return catalog.Errorf(catalog.KindInvalid, "folder %s does not belong to one refresh", folder)
		}
		err = p.files.RemoveAll(ctx, folder)
	}
	for _, file := range written {
		err = errors.Join(err, p.files.Remove(ctx, file))
	}
	return err
}
