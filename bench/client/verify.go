package client

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"sync"
)

// Want is what the answer to a load has to say.
type Want struct {
	Snapshots int   // that are sent
	Head      int64 // current snapshot and main
}

// Verifier knows the right answer to one load request. It is safe for concurrent use.
type Verifier struct {
	etag     string
	bytes    int
	metadata [sha256.Size]byte
	seed     maphash.Seed

	mu   sync.RWMutex
	good map[uint64]bool // hashes of compressed bodies that were found right
}

// NewVerifier reads the first answer in full; later ones must carry the same metadata.
func NewVerifier(first Reply, want Want) (*Verifier, error) {
	t, err := first.Table()
	switch {
	case err != nil:
		return nil, err
	case first.ETag == "":
		return nil, errors.New("the answer has no ETag")
	case t.MetadataLocation == "":
		return nil, errors.New("the answer has no metadata-location")
	case t.Snapshots != want.Snapshots:
		return nil, fmt.Errorf("%d snapshots, want %d", t.Snapshots, want.Snapshots)
	case t.Current != want.Head || t.Main != want.Head:
		return nil, fmt.Errorf("current snapshot %d and main %d, want %d", t.Current, t.Main, want.Head)
	case !t.HasCurrent:
		return nil, fmt.Errorf("the answer lacks its current snapshot %d", t.Current)
	}
	v := &Verifier{
		etag: first.ETag, bytes: len(first.Body), metadata: sha256.Sum256(t.Metadata), seed: maphash.MakeSeed(),
	}
	v.good = map[uint64]bool{maphash.Bytes(v.seed, first.Body): true}
	return v, nil
}

// ETag is the first answer's.
func (v *Verifier) ETag() string { return v.etag }

// WithETag is the same expectation of a server with other ETags.
func (v *Verifier) WithETag(etag string) *Verifier {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return &Verifier{etag: etag, bytes: v.bytes, metadata: v.metadata, seed: v.seed, good: maps.Clone(v.good)}
}

// Bytes is the length of the first answer as it was sent.
func (v *Verifier) Bytes() int { return v.bytes }

// Check compares an answer with the first one. Bytes that were found right once are
// recognised by their hash, so that checking costs far less than serving; others are
// decompressed and compared.
func (v *Verifier) Check(r Reply) error {
	if r.Status != http.StatusOK {
		return r.unexpected()
	}
	if r.ETag != v.etag {
		return fmt.Errorf("ETag %q, the first answer's was %q", r.ETag, v.etag)
	}
	sum := maphash.Bytes(v.seed, r.Body)
	v.mu.RLock()
	known := v.good[sum]
	v.mu.RUnlock()
	if known {
		return nil
	}
	t, err := r.Table()
	if err != nil {
		return err
	}
	if sha256.Sum256(t.Metadata) != v.metadata {
		return errors.New("the metadata differs from the first answer's")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.good[sum] = true
	return nil
}

// CheckNotModified checks the answer to a revalidation with [Verifier.ETag].
func (v *Verifier) CheckNotModified(r Reply) error { return r.notModified(v.etag) }

// CheckBareNotModified is CheckNotModified for a server whose 304 does not repeat the ETag.
func (v *Verifier) CheckBareNotModified(r Reply) error {
	if r.ETag == "" {
		r.ETag = v.etag
	}
	return r.notModified(v.etag)
}

func (r Reply) unexpected() error {
	if err := r.ok(); err != nil {
		return err
	}
	return fmt.Errorf("status %d, want 200", r.Status)
}
