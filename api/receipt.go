package api

import (
	"crypto/sha256"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/catalogd/catalogd/catalog"
)

const idempotencyKey = "Idempotency-Key"

// uuidV7 is the version that a key has to have: its time lets servers sort and expire keys.
const uuidV7 = 7

// receipts gives a change that carries an Idempotency-Key a receipt, so that the catalog
// makes it once. The body joins the digest when it is read.
func receipts(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		value := r.Header.Get(idempotencyKey)
		if value == "" || r.Method != http.MethodPost && r.Method != http.MethodDelete || !strings.HasPrefix(c.Path(), "/v1/:prefix/") {
			return next(c)
		}
		key, err := uuid.Parse(value)
		if err != nil || len(value) != len(uuid.Nil.String()) || key.Version() != uuidV7 {
			return invalid("Invalid header %s: %q is not a UUIDv7 (RFC 9562) in its 36-character form", idempotencyKey, cut(value))
		}
		receipt := &catalog.Receipt{Key: key, Digest: sha256.Sum256([]byte(r.Method + " " + r.URL.RequestURI()))}
		c.SetRequest(r.WithContext(catalog.WithReceipt(r.Context(), receipt)))
		return next(c)
	}
}

// digest adds a body to the receipt of its request.
func digest(r *http.Request, body []byte) {
	if receipt := catalog.ReceiptOf(r.Context()); receipt != nil {
		receipt.Digest = sha256.Sum256(append(receipt.Digest[:], body...))
	}
}
