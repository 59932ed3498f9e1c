package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/catalogd/catalogd/catalog"
)

// Config says what may be written and how object stores are reached.
type Config struct {
	// Roots are the locations below which files may be written and removed.
	Roots []string
	// AllowAnyFile lets local files be written anywhere, for warehouses whose clients
	// choose table locations themselves.
	AllowAnyFile bool
	// Properties configure the object stores ("s3.endpoint", …). They come from the
	// server alone: a table's properties must never redirect its I/O.
	Properties map[string]string
}

// Files implements [catalog.Files].
type Files struct {
	roots   []place
	anyFile bool
	load    func(mount string) (iceio.IO, error)
	stop    context.CancelFunc

	mu     sync.Mutex
	mounts map[string]iceio.IO // by scheme://bucket, for the life of Files
}

var _ catalog.Files = (*Files)(nil)

// New checks cfg. Close releases what the object stores hold.
func New(cfg Config) (*Files, error) {
	f := &Files{anyFile: cfg.AllowAnyFile, mounts: make(map[string]iceio.IO)}
	for _, root := range cfg.Roots {
		p, err := parse(root)
		if err != nil {
			return nil, err
		}
		f.roots = append(f.roots, p)
	}
	// A FileIO keeps the context that it was loaded with, so this one lives as long as
	// Files and never belongs to a request.
	lifetime, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.load = func(mount string) (iceio.IO, error) { return iceio.LoadFS(lifetime, cfg.Properties, mount+"/") }
	return f, nil
}

// Close ends the lifetime of the object store clients.
func (f *Files) Close() { f.stop() }

// FS is the same storage in the form that iceberg-go reads and writes through.
func (f *Files) FS() iceio.WriteFileIO { return &fileIO{files: f} }

// Write implements [catalog.Files]. A local file that exists is KindAlreadyExists.
func (f *Files) Write(ctx context.Context, location string, data []byte) error {
	p, err := f.writable(location)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.local != "" {
		return writeError(location, writeLocal(p.local, data))
	}
	store, err := f.writeStore(p)
	if err != nil {
		return err
	}
	return writeError(location, store.WriteFile(p.uri, data))
}

// Read implements [catalog.Files].
func (f *Files) Read(ctx context.Context, location string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.open(location)
	if err != nil {
		return nil, readError(location, err)
	}
	defer file.Close()
	var size int64
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	data := make([]byte, 0, size+1) // one more byte lets the last Read see the end
	for {
		n, err := file.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, readError(location, err)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// Exists implements [catalog.Files]: one stat for a local file, true for an object store.
func (f *Files) Exists(_ context.Context, location string) (bool, error) {
	p, err := parse(location)
	if err != nil {
		return false, err
	}
	if p.local == "" {
		return true, nil
	}
	info, err := statLocal(p.local)
	switch {
	case err == nil:
		return !info.IsDir(), nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, catalog.Errorf(catalog.KindUnavailable, "cannot look for file %s", location).Because(err)
	}
}

// Prepare implements [catalog.Files].
func (f *Files) Prepare(_ context.Context, location string) error {
	p, err := f.writable(strings.TrimRight(location, "/") + "/metadata")
	if err != nil || p.local == "" {
		return err
	}
	for _, folder := range []string{p.local, path.Join(path.Dir(p.local), "data")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return catalog.Errorf(catalog.KindUnavailable, "cannot make folder %s", folder).Because(err)
		}
	}
	return nil
}

// Remove deletes one file. A file that is not there counts as deleted.
func (f *Files) Remove(_ context.Context, location string) error {
	p, err := f.writable(location)
	if err != nil {
		return err
	}
	if p.local != "" {
		err = f.removeLocal(p.local)
	} else if store, loadErr := f.store(p); loadErr != nil {
		return loadErr
	} else {
		err = store.Remove(p.uri)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return catalog.Errorf(catalog.KindUnavailable, "cannot remove file %s", location).Because(err)
	}
	return nil
}

// removeLocal deletes a file under the name by which it would be opened.
func (f *Files) removeLocal(name string) error {
	err := os.Remove(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	other, ok := decoded(name)
	if !ok {
		return err
	}
	p, refused := f.writable(other)
	if refused != nil {
		return refused
	}
	return os.Remove(p.local)
}

// Allowed returns KindInvalid for a location that files may not be written below.
func (f *Files) Allowed(location string) error {
	_, err := f.writable(strings.TrimRight(location, "/") + "/x")
	return err
}

// store returns the FileIO of an object store, loading it once.
func (f *Files) store(p place) (iceio.IO, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if store, ok := f.mounts[p.mount]; ok {
		return store, nil
	}
	store, err := f.load(p.mount)
	if err != nil {
		return nil, catalog.Errorf(catalog.KindInvalid, "no storage is configured for location %s", p.uri).Because(err)
	}
	f.mounts[p.mount] = store
	return store, nil
}

func (f *Files) writeStore(p place) (iceio.WriteFileIO, error) {
	store, err := f.store(p)
	if err != nil {
		return nil, err
	}
	w, ok := store.(iceio.WriteFileIO)
	if !ok {
		return nil, catalog.Errorf(catalog.KindInvalid, "the storage of location %s is read-only", p.uri)
	}
	return w, nil
}

// writable parses a location and checks it against the roots.
func (f *Files) writable(location string) (place, error) {
	p, err := parse(location)
	if err != nil {
		return place{}, err
	}
	if p.local != "" && f.anyFile {
		return p, nil
	}
	if slices.ContainsFunc(f.roots, p.within) {
		return p, nil
	}
	return place{}, catalog.Errorf(catalog.KindInvalid, "location %s is outside of what this server may write", location)
}

func (f *Files) open(location string) (iceio.File, error) {
	p, err := parse(location)
	if err != nil {
		return nil, err
	}
	if p.local != "" {
		return openLocal(p.local)
	}
	store, err := f.store(p)
	if err != nil {
		return nil, err
	}
	return store.Open(p.uri)
}

func readError(location string, err error) error {
	if catalog.KindOf(err) != catalog.KindInternal {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errIsFolder) {
		// Java clients and the compatibility kit look for this very text.
		return catalog.Errorf(catalog.KindNotFound, "Failed to open input stream for file: %s", location).Because(err)
	}
	return catalog.Errorf(catalog.KindUnavailable, "cannot read file %s", location).Because(err)
}

func writeError(location string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return catalog.Errorf(catalog.KindAlreadyExists, "file %s exists already", location).Because(err)
	default:
		return catalog.Errorf(catalog.KindUnavailable, "cannot write file %s", location).Because(err)
	}
}
