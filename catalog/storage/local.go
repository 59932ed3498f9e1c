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

// localWriter collects a file under a temporary name; Close publishes it.
type localWriter struct {
	file   *os.File
	name   string
	once   sync.Once
	result error
}

// createLocal makes the folder if need be. The temporary file lies beside the final one,
// so that both are on the same file system.
func createLocal(name string) (*localWriter, error) {
	folder := filepath.Dir(name)
	file, err := os.CreateTemp(folder, ".tmp-*")
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolders(folder); err != nil {
			return nil, err
		}
		file, err = os.CreateTemp(folder, ".tmp-*")
	}
	if err != nil {
		return nil, err
	}
	return &localWriter{file: file, name: name}, nil
}

func (w *localWriter) Write(p []byte) (int, error)             { return w.file.Write(p) }
func (w *localWriter) ReadFrom(r io.Reader) (n int64, e error) { return w.file.ReadFrom(r) }

// Close makes the file durable and visible; it fails with fs.ErrExist if the name is
// taken. Closing again gives the same answer.
func (w *localWriter) Close() error {
	w.once.Do(func() { w.result = w.publish() })
	return w.result
}

func (w *localWriter) abort() error {
	w.once.Do(func() { w.result = errors.Join(w.file.Close(), os.Remove(w.file.Name())) })
	return w.result
}

func (w *localWriter) publish() error {
	temp := w.file.Name()
	err := errors.Join(w.file.Chmod(0o644), w.file.Sync(), w.file.Close())
	if err == nil {
		// A hard link never replaces a file, unlike a rename.
		err = os.Link(temp, w.name)
		if isNoLinks(err) {
			err = copyExclusive(temp, w.name)
		}
	}
	if err = errors.Join(err, os.Remove(temp)); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(w.name))
}

// isNoLinks tells a file system without hard links from a failure.
func isNoLinks(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EMLINK) || errors.Is(err, syscall.ENOSYS)
}

func copyExclusive(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err = errors.Join(err, dst.Sync(), dst.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
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
		file.Close()
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
