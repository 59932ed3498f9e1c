package storage

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

var errIsFolder = errors.New("is a folder")

// writeLocal stores data under a name that must be free.
func writeLocal(name string, data []byte) error {
	w, err := createLocal(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.abort())
	}
	return w.Close()
}

// localWriter writes a new file under its final name. Nobody looks for it before Close:
// names are never used twice, and become known only when a pointer names them. A
// temporary name would cost a link and an unlink for each commit and protect nobody.
type localWriter struct {
	file   *os.File
	once   sync.Once
	result error
}

// createLocal makes the folder if need be. It fails with fs.ErrExist if the name is taken.
func createLocal(name string) (*localWriter, error) {
	create := func() (*os.File, error) { return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) }
	file, err := create()
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolders(filepath.Dir(name)); err != nil {
			return nil, err
		}
		file, err = create()
	}
	if err != nil {
		return nil, err
	}
	return &localWriter{file: file}, nil
}

func (w *localWriter) Write(p []byte) (int, error)             { return w.file.Write(p) }
func (w *localWriter) ReadFrom(r io.Reader) (n int64, e error) { return w.file.ReadFrom(r) }

// Close makes the file durable. Closing again gives the same answer.
func (w *localWriter) Close() error {
	w.once.Do(func() {
		w.result = errors.Join(w.file.Sync(), w.file.Close())
		if w.result == nil {
			w.result = syncFolder(filepath.Dir(w.file.Name()))
		}
	})
	return w.result
}

func (w *localWriter) abort() error {
	w.once.Do(func() { w.result = errors.Join(w.file.Close(), os.Remove(w.file.Name())) })
	return w.result
}

// makeFolders is os.MkdirAll that also syncs the folders which gained an entry: a synced
// file is lost with its folder if the folder's own entry was never written.
func makeFolders(folder string) error {
	var missing []string
	for f := folder; ; f = filepath.Dir(f) {
		if _, err := os.Stat(f); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, f)
		if filepath.Dir(f) == f {
			break
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, f := range missing {
		if err := syncFolder(filepath.Dir(f)); err != nil {
			return err
		}
	}
	return nil
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func openLocal(name string) (*os.File, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		other, ok := decoded(name)
		if !ok {
			return nil, err
		}
		if file, err = os.Open(other); err != nil {
			return nil, err
		}
	}
	if err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			err = errors.Join(err, fs.ErrNotExist)
		}
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		_ = file.Close() // it was only opened for reading
		return nil, &fs.PathError{Op: "open", Path: name, Err: errIsFolder}
	}
	return file, nil
}

func statLocal(name string) (fs.FileInfo, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if other, ok := decoded(name); ok {
			return os.Stat(other)
		}
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	return info, err
}
