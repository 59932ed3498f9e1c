package client_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/catalogd/catalogd/bench/client"
)

const metadata = `{"table-uuid": "u", "location": "file:///t", "last-sequence-number": 2, "current-snapshot-id": 7,
 "snapshots": [{"snapshot-id": 5}, {"snapshot-id": 7}], "refs": {"main": {"snapshot-id": 7}}, "properties": {"owner": "alice"}}`

const etag = `"one"`

func wrap(metadata string) string {
	return `{"metadata-location": "file:///t/2.json", "metadata": ` + metadata + `, "config": {}}`
}

func pack(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reply(t *testing.T, metadata string) client.Reply {
	t.Helper()
	return client.Reply{Status: http.StatusOK, Gzip: true, ETag: etag, Body: pack(t, wrap(metadata))}
}

var want = client.Want{Snapshots: 2, Head: 7}

func TestVerifier_Check(t *testing.T) {
	t.Parallel()
	v, err := client.NewVerifier(reply(t, metadata), want)
	if err != nil {
		t.Fatal(err)
	}
	plain := client.Reply{Status: http.StatusOK, ETag: etag, Body: []byte(wrap(metadata))}
	otherConfig := client.Reply{Status: http.StatusOK, ETag: etag, Body: []byte(strings.Replace(wrap(metadata), `{}`, `{"token": "t"}`, 1))}
	for name, good := range map[string]client.Reply{"same": reply(t, metadata), "not compressed": plain, "other config": otherConfig} {
		for range 2 { // the second time by its hash
			if err := v.Check(good); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	damaged := reply(t, metadata)
	damaged.Body = bytes.Clone(damaged.Body)
	damaged.Body[len(damaged.Body)/2] ^= 1
	cut := reply(t, metadata)
	cut.Body = cut.Body[:len(cut.Body)-1]
	twoMembers := reply(t, metadata)
	twoMembers.Body = append(pack(t, wrap(metadata)), pack(t, "")...)
	otherTag := reply(t, metadata)
	otherTag.ETag = `"two"`
	noTag := reply(t, metadata)
	noTag.ETag = ""
	empty := client.Reply{Status: http.StatusNoContent, ETag: etag}
	failed := client.Reply{Status: http.StatusInternalServerError, Body: []byte(`{"error": {"message": "it broke"}}`)}
	for name, bad := range map[string]client.Reply{
		"one byte of a value":       reply(t, strings.Replace(metadata, "alice", "alicf", 1)),
		"a space more":              reply(t, strings.Replace(metadata, "alice", "alice ", 1)),
		"a lost snapshot":           reply(t, strings.Replace(metadata, `{"snapshot-id": 5}, `, "", 1)),
		"an older snapshot":         reply(t, strings.ReplaceAll(metadata, "7", "5")),
		"a flipped bit on the way":  damaged,
		"a lost byte":               cut,
		"two gzip members":          twoMembers,
		"another ETag":              otherTag,
		"no ETag":                   noTag,
		"no content":                empty,
		"an error":                  failed,
		"an ETag that is not asked": {Status: http.StatusNotModified, ETag: etag},
	} {
		if err := v.Check(bad); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

// TestVerifier_everyByte damages each byte of the compressed answer in turn. What passes
// must be a bit that means nothing, as the standard library sees it: padding and some of
// the header.
func TestVerifier_everyByte(t *testing.T) {
	t.Parallel()
	first := reply(t, metadata)
	v, err := client.NewVerifier(first, want)
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for i := range first.Body {
		bad := first
		bad.Body = bytes.Clone(first.Body)
		bad.Body[i] ^= 0x10
		if err := v.Check(bad); err != nil {
			continue
		}
		passed++
		z, err := gzip.NewReader(bytes.NewReader(bad.Body))
		if err != nil {
			t.Errorf("byte %d of %d: not noticed: %v", i, len(first.Body), err)
			continue
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != wrap(metadata) {
			t.Errorf("byte %d of %d: not noticed (%v)", i, len(first.Body), err)
		}
	}
	if passed > 10 {
		t.Errorf("%d damaged answers passed", passed)
	}
}

func TestNewVerifier_refuses(t *testing.T) {
	t.Parallel()
	noTag := reply(t, metadata)
	noTag.ETag = ""
	for name, tt := range map[string]struct {
		reply client.Reply
		want  client.Want
	}{
		"no ETag":             {noTag, want},
		"too few snapshots":   {reply(t, metadata), client.Want{Snapshots: 3, Head: 7}},
		"an old head":         {reply(t, metadata), client.Want{Snapshots: 2, Head: 8}},
		"main elsewhere":      {reply(t, strings.Replace(metadata, `"main": {"snapshot-id": 7}`, `"main": {"snapshot-id": 5}`, 1)), want},
		"current not sent":    {reply(t, strings.Replace(metadata, `{"snapshot-id": 7}]`, `{"snapshot-id": 6}]`, 1)), want},
		"no metadata":         {client.Reply{Status: http.StatusOK, ETag: etag, Body: []byte(`{}`)}, want},
		"no location":         {client.Reply{Status: http.StatusOK, ETag: etag, Body: []byte(`{"metadata": ` + metadata + `}`)}, want},
		"not JSON":            {client.Reply{Status: http.StatusOK, ETag: etag, Body: []byte(`hello`)}, want},
		"an error, not found": {client.Reply{Status: http.StatusNotFound, ETag: etag, Body: pack(t, `{}`), Gzip: true}, want},
	} {
		if _, err := client.NewVerifier(tt.reply, tt.want); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestVerifier_CheckNotModified(t *testing.T) {
	t.Parallel()
	v, err := client.NewVerifier(reply(t, metadata), want)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.CheckNotModified(client.Reply{Status: http.StatusNotModified, ETag: etag}); err != nil {
		t.Error(err)
	}
	if err := v.WithETag(`"two"`).CheckNotModified(client.Reply{Status: http.StatusNotModified, ETag: `"two"`}); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]client.Reply{
		"the whole answer": reply(t, metadata),
		"a body":           {Status: http.StatusNotModified, ETag: etag, Body: []byte("x")},
		"another ETag":     {Status: http.StatusNotModified, ETag: `"two"`},
		"no ETag":          {Status: http.StatusNotModified},
	} {
		if err := v.CheckNotModified(bad); err == nil {
			t.Errorf("%s: not noticed", name)
		}
		if err := v.CheckBareNotModified(bad); (err == nil) != (name == "no ETag") {
			t.Errorf("%s, a bare 304 is fine: %v", name, err)
		}
	}
}

func TestTable_Line(t *testing.T) {
	t.Parallel()
	const fork = `{"current-snapshot-id": 7, "snapshots": [{"snapshot-id": 5}, {"snapshot-id": 6, "parent-snapshot-id": 5}, {"snapshot-id": 7, "parent-snapshot-id": 5}]}`
	for name, tt := range map[string]struct {
		metadata string
		want     int
	}{
		"none":           {`{"current-snapshot-id": -1}`, 0},
		"a fork":         {fork, 2},
		"parent is gone": {`{"current-snapshot-id": 7, "snapshots": [{"snapshot-id": 7, "parent-snapshot-id": 5}]}`, 1},
		"a circle":       {`{"current-snapshot-id": 7, "snapshots": [{"snapshot-id": 7, "parent-snapshot-id": 7}]}`, 1},
	} {
		got, err := reply(t, tt.metadata).Table()
		if err != nil || got.Line != tt.want {
			t.Errorf("%s: %d, %v, want %d", name, got.Line, err, tt.want)
		}
	}
}

func TestReply_CheckFirstPage(t *testing.T) {
	t.Parallel()
	page := func(text string) client.Reply { return client.Reply{Status: http.StatusOK, Body: []byte(text)} }
	const two = `"identifiers": [{"namespace": ["n"], "name": "a"}, {"namespace": ["n"], "name": "b"}]`
	want := []string{"a", "b"}
	if err := page(`{`+two+`, "next-page-token": "t"}`).CheckFirstPage(want, true); err != nil {
		t.Error(err)
	}
	for _, last := range []string{`{` + two + `}`, `{` + two + `, "next-page-token": null}`} {
		if err := page(last).CheckFirstPage(want, false); err != nil {
			t.Errorf("%s: %v", last, err)
		}
		if err := page(last).CheckFirstPage(want, true); err == nil {
			t.Errorf("%s: the missing token was not noticed", last)
		}
	}
	for name, bad := range map[string]client.Reply{
		"a token too many": page(`{` + two + `, "next-page-token": "t"}`),
		"a name missing":   page(`{"identifiers": [{"name": "a"}]}`),
		"order":            page(`{"identifiers": [{"name": "b"}, {"name": "a"}]}`),
		"not JSON":         page(`names`),
		"an error":         {Status: http.StatusNotFound, Body: []byte(`{}`)},
	} {
		if err := bad.CheckFirstPage(want, false); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestAppend_Check(t *testing.T) {
	t.Parallel()
	w := client.WriterOf(client.At("http://127.0.0.1:1", "wh"), "n", "t", "file:///t")
	a, err := w.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(a.Body), `"ref-name":"main","snapshot-id":`)
	if !ok {
		t.Fatalf("the request sets no ref: %s", a.Body)
	}
	id, _, _ := strings.Cut(after, ",")
	answer := func(head, main string, sequence int, snapshots string) client.Reply {
		return client.Reply{Status: http.StatusOK, Body: fmt.Appendf(nil,
			`{"metadata-location": "l", "metadata": {"current-snapshot-id": %s, "refs": {"main": {"snapshot-id": %s}}, "last-sequence-number": %d, "snapshots": [%s]}}`,
			head, main, sequence, snapshots)}
	}
	this := `{"snapshot-id": ` + id + `}`
	if err := a.Check(answer(id, id, 1, this)); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]client.Reply{
		"nothing was kept":      answer("-1", "0", 0, ""),
		"main did not move":     answer(id, "3", 1, this),
		"one snapshot too many": answer(id, id, 1, this+`, {"snapshot-id": 4}`),
		"sequence number":       answer(id, id, 2, this),
		"refused":               {Status: http.StatusConflict, Body: []byte(`{}`)},
	} {
		if err := a.Check(bad); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}
