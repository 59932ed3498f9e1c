package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/catalog"
)

// FuzzSpliced holds the spliced answer against Go's own gzip, for any document between any
// texts, repeated to lengths around those of a block.
func FuzzSpliced(f *testing.F) {
	f.Add([]byte(`{"metadata":`), []byte(`{"a":[1.50]}`), []byte(`,"config":{}}`), uint8(0), uint16(0))
	f.Add([]byte(""), []byte(""), []byte(""), uint8(0), uint16(0))
	f.Add([]byte("a"), []byte("b"), []byte("c"), uint8(0), uint16(maxStored))
	f.Add([]byte("xyz"), []byte("\x00\xff"), []byte(""), uint8(1), uint16(maxStored/3))
	f.Add([]byte(""), []byte(`{"snapshot-id":1}`), []byte(`}`), uint8(2), uint16(9000))
	f.Fuzz(func(t *testing.T, prefix, document, suffix []byte, which uint8, times uint16) {
		parts := [3][]byte{prefix, document, suffix}
		if part := &parts[which%3]; len(*part) > 0 && len(*part)*int(times) < 1<<20 {
			*part = append(bytes.Clone(*part), bytes.Repeat(*part, int(times))...)
		}
		s := spliced{prefix: parts[0], document: catalog.Encode(parts[1]), suffix: parts[2]}
		want := bytes.Join(parts[:], nil)

		var packed, plain bytes.Buffer
		if err := s.writeGzip(&packed); err != nil {
			t.Fatal(err)
		}
		if int64(packed.Len()) != s.gzipSize() || int64(len(want)) != s.size() {
			t.Errorf("%d bytes announced as %d, and %d plain ones as %d", packed.Len(), s.gzipSize(), len(want), s.size())
		}
		r, err := gzip.NewReader(&packed)
		if err != nil {
			t.Fatal(err)
		}
		r.Multistream(false) // not every client reads on after the first member
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("gunzip gives %d bytes, want %d: %v", len(got), len(want), err)
		}
		if packed.Len() > 0 {
			t.Errorf("%d bytes follow the member", packed.Len())
		}
		if err := s.writePlain(&plain); err != nil || !bytes.Equal(plain.Bytes(), want) {
			t.Errorf("plain: %d bytes, want %d: %v", plain.Len(), len(want), err)
		}
	})
}

// FuzzPageTokenTampered changes a token in one place, or takes it to another listing.
func FuzzPageTokenTampered(f *testing.F) {
	f.Add("some name", "tables", "a.b", uint(3), byte('A'))
	f.Add("名", "views", "%2E", uint(0), byte('\n'))
	f.Add("\x1f", "", "", uint(99), byte('='))
	f.Add("a", "namespaces", "a", uint(11), byte(' '))
	f.Fuzz(func(t *testing.T, position, operation, namespace string, at uint, c byte) {
		l := listing{operation, "wh", catalog.DecodeNamespace(namespace)}
		if position == "" {
			return
		}
		token := *l.token(position)
		if got, err := l.position(token); err != nil || got != position {
			t.Fatalf("position(%q) = %q, %v; want %q", token, got, err, position)
		}
		i := int(at % uint(len(token)))
		for _, other := range []string{
			token[:i] + string(rune(c)) + token[i+1:], // replaced
			token[:i] + string(rune(c)) + token[i:],   // inserted
			token[:i] + token[i+1:],                   // removed
			token[:i], token[i:] + token[:i], token + string(rune(c)), strings.ToLower(token),
		} {
			if other == token {
				continue
			}
			if got, err := l.position(other); err == nil {
				t.Errorf("the token %q of %q is taken as %q, for %q", token, position, other, got)
			} else if catalog.KindOf(err) != catalog.KindInvalid {
				t.Errorf("position(%q): %v, want KindInvalid", other, err)
			}
		}
		for _, other := range []listing{
			{operation + "x", "wh", l.namespace}, {operation, "wh2", l.namespace}, {operation, "wh", append(catalog.Namespace{"x"}, l.namespace...)},
		} {
			if got, err := other.position(token); err == nil {
				t.Errorf("the token of %v is taken by %v, for %q", l, other, got)
			}
		}
	})
}
