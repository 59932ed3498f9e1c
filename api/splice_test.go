package api

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/catalogd/catalogd/catalog"
)

func FuzzCombineCRC(f *testing.F) {
	f.Add([]byte(""), []byte(""))
	f.Add([]byte("a"), []byte(""))
	f.Add([]byte(""), []byte("b"))
	f.Add(bytes.Repeat([]byte("abc"), 1000), bytes.Repeat([]byte{0}, 4097))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		got := combineCRC(crc32.ChecksumIEEE(first), crc32.ChecksumIEEE(second), int64(len(second)))
		if want := crc32.ChecksumIEEE(append(bytes.Clone(first), second...)); got != want {
			t.Errorf("combineCRC of %d and %d bytes = %08x, want %08x", len(first), len(second), got, want)
		}
	})
}

// TestCombineCRC_Long uses lengths that no test could allocate: zeros appended to a text
// in two steps and in one must agree.
func TestCombineCRC_Long(t *testing.T) {
	t.Parallel()
	zeros := func(n int64) uint32 { // CRC of n zero bytes, by doubling
		crc, done := uint32(0), int64(0)
		unit, size := crc32.ChecksumIEEE([]byte{0}), int64(1)
		for ; n > 0; n >>= 1 {
			if n&1 == 1 {
				crc = combineCRC(crc, unit, size)
				done += size
			}
			unit, size = combineCRC(unit, unit, size), size*2
		}
		return crc
	}
	if got, want := zeros(1<<20), crc32.ChecksumIEEE(make([]byte, 1<<20)); got != want {
		t.Fatalf("CRC of 1 MiB of zeros = %08x, want %08x", got, want)
	}
	first := crc32.ChecksumIEEE([]byte("catalogd"))
	for _, n := range []int64{1 << 31, 1<<32 + 5, 1 << 40} {
		half := combineCRC(combineCRC(first, zeros(n/2), n/2), zeros(n-n/2), n-n/2)
		if whole := combineCRC(first, zeros(n), n); whole != half {
			t.Errorf("CRC after %d zeros = %08x in one step, %08x in two", n, whole, half)
		}
	}
}

// jsonText makes a text of n bytes that compresses like metadata does.
func jsonText(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(`{"snapshot-id":`)
		for range 19 {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		b.WriteString(`,"summary":{"operation":"append","engine":"日本"}}`)
	}
	return b.Bytes()[:n]
}

// TestSpliced reads answers with Go's gzip, which checks CRC and length, and insists on
// one member.
func TestSpliced(t *testing.T) {
	t.Parallel()
	prefixes := [][]byte{nil, []byte(`{"metadata":`), jsonText(maxStored), jsonText(maxStored + 1), jsonText(3 * maxStored)}
	for _, n := range []int{0, 1, 2, 100, 4095, 32768, 65535, 65536, 200_000, 1 << 20} {
		document := jsonText(n)
		for _, prefix := range prefixes {
			s := spliced{prefix: prefix, document: catalog.Encode(document), suffix: []byte(`,"config":{}}`)}
			want := append(append(bytes.Clone(prefix), document...), s.suffix...)
			if s.size() != int64(len(want)) {
				t.Fatalf("size = %d, want %d", s.size(), len(want))
			}
			var plain, packed bytes.Buffer
			if err := s.writePlain(&plain); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(plain.Bytes(), want) {
				t.Fatalf("plain answer of a document of %d bytes differs from its parts", n)
			}
			if err := s.writeGzip(&packed); err != nil {
				t.Fatal(err)
			}
			if int64(packed.Len()) != s.gzipSize() {
				t.Fatalf("gzip answer has %d bytes, announced were %d", packed.Len(), s.gzipSize())
			}
			if got := oneMember(t, packed.Bytes()); !bytes.Equal(got, want) {
				t.Fatalf("gzip answer of a document of %d bytes differs from the plain one", n)
			}
		}
	}
}

// oneMember decompresses exactly one gzip member and fails if anything follows it.
func oneMember(t *testing.T, packed []byte) []byte {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(packed)) // a ByteReader, so that gzip reads no further than it must
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("gzip answer: %v", err)
	}
	if rest, _ := io.ReadAll(in); len(rest) != 0 {
		t.Fatalf("%d bytes follow the gzip member", len(rest))
	}
	return plain
}

// TestSpliced_Damaged: a stored document that is not what its row says must never be
// served as if it were whole.
func TestSpliced_Damaged(t *testing.T) {
	t.Parallel()
	good := catalog.Encode(jsonText(10_000))
	short, crc, bits := good, good, good
	short.Size++
	crc.CRC32 ^= 1
	bits.Deflate = append(bytes.Clone(good.Deflate[:len(good.Deflate)/2]), 0xff, 0xff, 0xff)
	for name, d := range map[string]catalog.Encoded{"length": short, "crc": crc, "deflate": bits} {
		s := spliced{prefix: []byte("{"), document: d, suffix: []byte("}")}
		if err := s.writePlain(io.Discard); err == nil {
			t.Errorf("%s: a damaged document was served", name)
		}
		var packed bytes.Buffer
		if err := s.writeGzip(&packed); err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(&packed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(z); err == nil {
			t.Errorf("%s: the client cannot tell that the document is damaged", name)
		}
	}
}

func TestSpliced_WriteError(t *testing.T) {
	t.Parallel()
	s := spliced{prefix: []byte("{"), document: catalog.Encode(jsonText(1000)), suffix: []byte("}")}
	if err := s.writeGzip(brokenPipe{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writeGzip = %v", err)
	}
	if err := s.writePlain(brokenPipe{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writePlain = %v", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func FuzzPageToken(f *testing.F) {
	l := listing{"tables", "wh", catalog.Namespace{"a", "b"}}
	f.Add("")
	f.Add("x")
	f.Add(*l.token("some name"))
	f.Fuzz(func(t *testing.T, token string) {
		position, err := l.position(token)
		if err != nil {
			if catalog.KindOf(err) != catalog.KindInvalid {
				t.Errorf("position(%q) = %v, want KindInvalid", token, err)
			}
			return
		}
		if again := l.token(position); again == nil || *again != token {
			t.Errorf("position(%q) = %q, whose token differs", token, position)
		}
	})
}

func TestPageToken_BelongsToItsListing(t *testing.T) {
	t.Parallel()
	l := listing{"tables", "wh", catalog.Namespace{"a", "b"}}
	token := *l.token("名")
	if got, err := l.position(token); err != nil || got != "名" {
		t.Fatalf("position = %q, %v", got, err)
	}
	for _, other := range []listing{
		{"views", "wh", catalog.Namespace{"a", "b"}},
		{"tables", "wh2", catalog.Namespace{"a", "b"}},
		{"tables", "wh", catalog.Namespace{"a.b"}},
		{"tables", "wh", catalog.Namespace{"a"}},
	} {
		if _, err := other.position(token); catalog.KindOf(err) != catalog.KindInvalid {
			t.Errorf("%v takes a token of another listing: %v", other, err)
		}
	}
	for i := range token { // any one character changed
		c := byte('A')
		if token[i] == c {
			c = 'B'
		}
		if _, err := l.position(token[:i] + string(c) + token[i+1:]); err == nil {
			t.Errorf("the token is taken with character %d changed", i)
		}
	}
}

func TestAcceptsGzip(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "x-gzip": true, "deflate": false, "deflate, gzip;q=0.5": true,
		"gzip;q=0": false, "gzip; q=0.0, *": false, "*": true, "*;q=0": false, "br, *;q=0.1": true,
		"identity": false, "gzip;q=x": false, "gzipped": false, "gzip, x-gzip, deflate": true,
	} {
		if got := acceptsGzip([]string{header}); got != want {
			t.Errorf("acceptsGzip(%q) = %t", header, got)
		}
	}
	if !acceptsGzip([]string{"br", "gzip"}) {
		t.Error("a second header line is not read")
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	tag := etag("file:///t/1.json", shapeAll, nil)
	for value, want := range map[string]bool{
		tag: true, "W/" + tag: true, "*": true, `"x", ` + tag: true, `"x",W/` + tag + `,"y"`: true,
		`"x"`: false, "": false, tag[1 : len(tag)-1]: false,
	} {
		if got := matches(&value, tag); got != want {
			t.Errorf("matches(%s, %s) = %t", value, tag, got)
		}
	}
	star := "*"
	if matches(nil, tag) || matches(&star, "") {
		t.Error("matches without a header or without a tag")
	}
}

func TestETag_Distinct(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, location := range []string{"file:///a", "file:///a1"} {
		for _, shape := range []string{shapeAll, shapeRefs} {
			for _, extra := range []string{`,"config":{}}`, `,"config":{"a":"b"}}`} {
				tag := etag(location, shape, []byte(extra))
				if other, ok := seen[tag]; ok {
					t.Errorf("%s %s %s has the ETag of %s", location, shape, extra, other)
				}
				seen[tag] = location + shape + extra
				if tag != etag(location, shape, []byte(extra)) {
					t.Error("an ETag is not stable")
				}
			}
		}
	}
}

func TestWire_Complete(t *testing.T) {
	t.Parallel()
	for k := range catalog.NumKinds {
		kind := catalog.Kind(k)
		if wire[kind].status < 400 || wire[kind].exception == "" {
			t.Errorf("Kind %d has no wire form", k)
		}
		// On a commit route 5xx is for unknown outcomes only.
		a := answerTo(catalog.Errorf(kind, "x"), oneCommit)
		if a.status >= 500 && kind != catalog.KindCommitStateUnknown {
			t.Errorf("Kind %d is %d on a commit route", k, a.status)
		}
		if plain := answerTo(catalog.Errorf(kind, "x"), noCommit); plain.status != wire[kind].status || plain.exception != wire[kind].exception {
			t.Errorf("Kind %d is %v outside of commit routes, want %v", k, plain.wireForm, wire[kind])
		}
	}
}
