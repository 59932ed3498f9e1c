package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/catalog"
)

const (
	// pageSizeDefault is the size of a page when the client pages without saying how big.
	pageSizeDefault = 1000
	// pageSizeMax bounds what a client may ask for; a page may always be smaller.
	pageSizeMax = 10_000

	pageTokenVersion = 1
	pageTokenSum     = 8
)

// listing is what a page token belongs to: the token of one listing says nothing about
// the position in another.
type listing struct {
	operation string
	warehouse string
	namespace catalog.Namespace
}

// sum ties a position to the listing. It is no secret: a forged token reaches no more
// than an honest listing does. It tells a token from garbage.
func (l listing) sum(position string) []byte {
	h := sha256.New()
	h.Write([]byte{pageTokenVersion})
	for _, part := range []string{l.operation, l.warehouse, catalog.EncodeNamespace(l.namespace), position} {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:pageTokenSum]
}

// token makes the opaque form of a position; the end of the listing has none.
func (l listing) token(position string) *string {
	if position == "" {
		return nil
	}
	raw := append([]byte{pageTokenVersion}, l.sum(position)...)
	token := base64.RawURLEncoding.EncodeToString(append(raw, position...))
	return &token
}

// position reads a token.
func (l listing) position(token string) (string, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	// The decoder skips line breaks, even when it is strict.
	if err != nil || strings.ContainsAny(token, "\r\n") || len(raw) <= 1+pageTokenSum || raw[0] != pageTokenVersion {
		return "", invalid("Invalid parameter pageToken: it is not a token of this server; start again without it")
	}
	position := string(raw[1+pageTokenSum:])
	if !bytes.Equal(raw[1:1+pageTokenSum], l.sum(position)) {
		return "", invalid("Invalid parameter pageToken: it does not belong to this listing; start again without it")
	}
	return position, nil
}

// page reads the paging parameters. A client that sends neither gets everything at once,
// because it will not ask for more. iceberg-go's first request has a size and no token,
// Java's an empty token and no size.
func (l listing) page(token, size *string) (catalog.PageRequest, error) {
	var p catalog.PageRequest
	switch {
	case text(size) != "":
		n, err := strconv.Atoi(*size)
		if err != nil || n < 1 {
			return p, invalid("Invalid parameter pageSize: %q is not a number from 1 on", *size)
		}
		p.Size = min(n, pageSizeMax)
	case token != nil:
		p.Size = pageSizeDefault
	}
	if text(token) == "" {
		return p, nil
	}
	var err error
	p.After, err = l.position(*token)
	return p, err
}
