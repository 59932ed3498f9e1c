package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	iceio "github.com/apache/iceberg-go/io"

	"github.com/catalogd/catalogd/catalog"
)

// fileIO is Files as iceberg-go's interfaces. Writes obey the same roots and, locally,
// the same rules: durable, and never over an existing file.
type fileIO struct {
	files *Files
}

var (
	_ iceio.WriteFileIO = (*fileIO)(nil)
	_ iceio.StatIO      = (*fileIO)(nil)
)

// Open opens a file for reading; the error of a missing one matches fs.ErrNotExist.
func (f *fileIO) Open(name string) (iceio.File, error) { return f.files.open(name) }

// Remove deletes a file.
func (f *fileIO) Remove(name string) error {
	return f.files.Remove(context.Background(), name)
}

// Create starts a file that appears when it is closed.
func (f *fileIO) Create(name string) (iceio.FileWriter, error) {
	p, err := f.files.writable(name)
	if err != nil {
		return nil, err
	}
	if p.local != "" {
		return createLocal(p.local)
	}
	store, err := f.files.writeStore(p)
	if err != nil {
		return nil, err
	}
	return store.Create(p.uri)
}

// WriteFile is [Files.Write].
func (f *fileIO) WriteFile(name string, data []byte) error {
	return f.files.Write(context.Background(), name, data)
}

// Stat describes a file.
func (f *fileIO) Stat(name string) (fs.FileInfo, error) {
	p, err := parse(name)
	if err != nil {
		return nil, err
	}
	if p.local != "" {
		return statLocal(p.local)
	}
	file, err := f.files.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Stat()
}

// List returns the locations of all files below folder, in the form of folder. A folder
// that does not exist is empty.
func (f *Files) List(ctx context.Context, folder string) ([]string, error) {
	p, err := parse(folder)
	if err != nil {
		return nil, err
	}
	prefix := strings.TrimRight(folder, "/")
	var found []string
	if p.local != "" {
		err = filepath.WalkDir(p.local, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found = append(found, prefix+strings.TrimPrefix(name, p.local))
			}
			return errors.Join(err, ctx.Err())
		})
	} else {
		found, err = f.listObjects(p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, catalog.Errorf(catalog.KindUnavailable, "cannot list folder %s", folder).Because(err)
	}
	slices.Sort(found)
	return found, nil
}

func (f *Files) listObjects(p place) ([]string, error) {
	store, err := f.store(p)
	if err != nil {
		return nil, err
	}
	lister, ok := store.(iceio.ListableIO)
	if !ok {
		return nil, errors.New("this storage cannot list")
	}
	var found []string
	root := strings.TrimRight(p.uri, "/") + "/"
	err = lister.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, name)
		}
		return err
	})
	return found, err
}

// RemoveAll deletes every file below folder and, locally, the folder itself.
func (f *Files) RemoveAll(ctx context.Context, folder string) error {
	p, err := f.writable(folder)
	if err != nil {
		return err
	}
	if p.local != "" {
		if err := os.RemoveAll(p.local); err != nil {
			return catalog.Errorf(catalog.KindUnavailable, "cannot remove folder %s", folder).Because(err)
		}
		return nil
	}
	names, err := f.List(ctx, folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		err = errors.Join(err, f.Remove(ctx, name))
	}
	return err
}
