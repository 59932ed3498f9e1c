package catalog

import (
	"bytes"
	"compress/flate"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEncode_roundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOfN(rapid.Byte(), 0, 4096).Draw(t, "plain")
		e := Encode(plain)
		got, err := e.Plain()
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("Plain(Encode(%d bytes)) = %d bytes, %v", len(plain), len(got), err)
		}
		if e.CRC32 != crc32.ChecksumIEEE(plain) || e.Size != int64(len(plain)) {
			t.Fatalf("crc or size is wrong")
		}
		// The run must be continuable: a final empty block appended by hand ends it.
		tail := append(bytes.Clone(e.Deflate), 1, 0, 0, 0xff, 0xff)
		all, err := io.ReadAll(flate.NewReader(bytes.NewReader(tail)))
		if err != nil || !bytes.Equal(all, plain) {
			t.Fatalf("the standard library reads %d bytes, %v", len(all), err)
		}
	})
}

func TestEncoded_Plain_damaged(t *testing.T) {
	t.Parallel()
	e := Encode([]byte(strings.Repeat(`{"a":1}`, 100)))
	e.CRC32++
	if _, err := e.Plain(); err == nil {
		t.Error("a wrong CRC was not noticed")
	}
	e.CRC32--
	e.Size++
	if _, err := e.Plain(); err == nil {
		t.Error("a wrong size was not noticed")
	}
}

func TestDocument_ForRefs(t *testing.T) {
	t.Parallel()
	same := NewDocument("m", []byte(`{"a":1}`), []byte(`{"a":1}`))
	if !same.Refs.Empty() || same.ForRefs().Size != 7 {
		t.Error("an equal refs form is kept twice")
	}
	other := NewDocument("m", []byte(`{"a":1}`), []byte(`{}`))
	if other.ForRefs().Size != 2 {
		t.Error("the refs form is lost")
	}
}

func TestNamespace_encoding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ns   Namespace
		want string // what the SQL catalogs of other clients would write, where they agree
	}{
		{Namespace{"a"}, "a"},
		{Namespace{"a", "b"}, "a.b"},
		{Namespace{"50%"}, "50%"},
		{Namespace{"a.b"}, "a%2Eb"},
		{Namespace{"a%2Eb"}, "a%252Eb"},
	} {
		if got := EncodeNamespace(tt.ns); got != tt.want {
			t.Errorf("EncodeNamespace(%q) = %q, want %q", tt.ns, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.StringOfN(rapid.RuneFrom([]rune{'.', '%', '2', '5', 'E', 'a', ' ', '/', 'é'}), 1, 8, -1)
		ns := Namespace(rapid.SliceOfN(level, 1, 4).Draw(t, "ns"))
		if got := DecodeNamespace(EncodeNamespace(ns)); !got.Equal(ns) {
			t.Fatalf("DecodeNamespace(%q) = %q, want %q", EncodeNamespace(ns), got, ns)
		}
	})
}

// TestNamespace_noCollision: two namespaces never share a column value.
func TestNamespace_noCollision(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.StringOfN(rapid.RuneFrom([]rune{'.', '%', '2', '5', 'E'}), 1, 6, -1)
		gen := rapid.SliceOfN(level, 1, 3)
		a, b := Namespace(gen.Draw(t, "a")), Namespace(gen.Draw(t, "b"))
		if !a.Equal(b) && EncodeNamespace(a) == EncodeNamespace(b) {
			t.Fatalf("%q and %q are both %q", a, b, EncodeNamespace(a))
		}
	})
}

func FuzzDecodeNamespace(f *testing.F) {
	for _, s := range []string{"", "a.b", "%2E", "%", "a%252Eb.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ns := DecodeNamespace(s)
		if again := DecodeNamespace(EncodeNamespace(ns)); !again.Equal(ns) {
			t.Fatalf("%q decodes to %q, then to %q", s, ns, again)
		}
	})
}

// FuzzEncodeNamespace: a namespace that may exist comes back, and no other one has its
// code.
func FuzzEncodeNamespace(f *testing.F) {
	f.Add("a\x1fb", "a.b")
	f.Add("a%2Eb", "a.b")
	f.Add("%252E", "%25\x1f2E")
	f.Add("%\x1f2E", "%.2E")
	f.Fuzz(func(t *testing.T, first, second string) {
		a, b := Namespace(strings.Split(first, "\x1f")), Namespace(strings.Split(second, "\x1f"))
		if CheckNamespace(a) != nil || CheckNamespace(b) != nil {
			return
		}
		if got := DecodeNamespace(EncodeNamespace(a)); !got.Equal(a) {
			t.Errorf("%q is %q, which is %q", a, EncodeNamespace(a), got)
		}
		if !a.Equal(b) && EncodeNamespace(a) == EncodeNamespace(b) {
			t.Errorf("%q and %q are both %q", a, b, EncodeNamespace(a))
		}
	})
}

func TestCache(t *testing.T) {
	t.Parallel()
	doc := func(location string) *Document {
		return &Document{MetadataLocation: location, All: Encoded{Deflate: make([]byte, 100-len(location))}}
	}
	id := func(name string) TableIdent { return TableIdent{Namespace: Namespace{"ns"}, Name: name} }
	c := newCache(250)
	c.put("w", id("a"), doc("a0"))
	c.put("w", id("b"), doc("b0"))
	if c.held("w", id("a")) == nil { // makes b the oldest
		t.Fatal("a is not held")
	}
	c.put("w", id("c"), doc("c0"))
	if c.held("w", id("b")) != nil {
		t.Error("the least recently used document is still held")
	}
	if c.held("w", id("a")) == nil || c.held("w", id("c")) == nil {
		t.Error("a document that fits was dropped")
	}
	c.put("w", id("a"), doc("a1"))
	if d := c.held("w", id("a")); d == nil || d.MetadataLocation != "a1" {
		t.Errorf("held = %v, want a1", d)
	}
	if c.get("a0") != nil {
		t.Error("a superseded document is kept")
	}
	if c.held("other", id("a")) != nil {
		t.Error("warehouses are mixed up")
	}
	c.put("w", id("huge"), &Document{MetadataLocation: "h", All: Encoded{Deflate: make([]byte, 1000)}})
	if c.held("w", id("huge")) != nil || c.used > c.limit {
		t.Errorf("a document over the limit is kept; used %d of %d", c.used, c.limit)
	}
}

func TestCache_hintsAreBounded(t *testing.T) {
	t.Parallel()
	c := newCache(100)
	for i := range 10_000 {
		name := strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26%50) + strings.Repeat("z", i/1300)
		c.put("w", TableIdent{Namespace: Namespace{"ns"}, Name: name}, &Document{MetadataLocation: name, All: Encoded{Deflate: make([]byte, 50)}})
	}
	if len(c.hints) > 4*len(c.byLoc)+1024 {
		t.Errorf("%d hints for %d documents", len(c.hints), len(c.byLoc))
	}
}
