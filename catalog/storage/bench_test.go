package storage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/catalogd/catalogd/catalog/storage"
)

// BenchmarkWrite compares a durable write with its floor: the same bytes into a new file
// with one fsync.
func BenchmarkWrite(b *testing.B) {
	data := make([]byte, 32<<10)
	b.Run("files", func(b *testing.B) {
		root := b.TempDir()
		f := open(b, storage.Config{Roots: []string{root}})
		for i := 0; b.Loop(); i++ {
			if err := f.Write(b.Context(), fmt.Sprintf("file://%s/%d.json", root, i), data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		root := b.TempDir()
		for i := 0; b.Loop(); i++ {
			writeSynced(b, filepath.Join(root, strconv.Itoa(i)), data)
		}
	})
}

func writeSynced(b *testing.B, name string, data []byte) {
	b.Helper()
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead compares a read with os.ReadFile.
func BenchmarkRead(b *testing.B) {
	root := b.TempDir()
	f := open(b, storage.Config{Roots: []string{root}})
	location := "file://" + root + "/v1.json"
	if err := f.Write(b.Context(), location, make([]byte, 32<<10)); err != nil {
		b.Fatal(err)
	}
	b.Run("files", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.Read(b.Context(), location); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadFile(root + "/v1.json"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
