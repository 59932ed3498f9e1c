package scan

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
)

const (
	tokenVersion = 1
	tokenSum     = 16
	secretBytes  = 16
)

// token names a page of a plan. Its sum needs the plan's secret and includes the table,
// so that nobody can turn it into a token for another page, plan or table.
func (p Plan) token(page int) string {
	raw := []byte{tokenVersion}
	id := uuid.MustParse(p.ID) // ours
	raw = append(raw, id[:]...)
	raw = binary.BigEndian.AppendUint32(raw, uint32(page))
	return base64.RawURLEncoding.EncodeToString(append(raw, p.sum(raw)...))
}

func (p Plan) sum(raw []byte) []byte {
	mac := hmac.New(sha256.New, p.Secret)
	mac.Write(raw)
	mac.Write([]byte(p.TableUUID))
	return mac.Sum(nil)[:tokenSum]
}

func noSuchTask() *catalog.Error {
	return catalog.Errorf(catalog.KindNoSuchPlanTask, "The plan task does not exist: it is not one of this table's, or its plan was cancelled or has expired; plan again")
}

// ticket is a token that was taken apart, but not proven.
type ticket struct {
	plan string
	page int
	raw  []byte
	sum  []byte
}

func parseToken(token string) (ticket, error) {
	const head = 1 + 16 + 4
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != head+tokenSum || raw[0] != tokenVersion {
		return ticket{}, noSuchTask()
	}
	return ticket{
		plan: uuid.UUID(raw[1:17]).String(), page: int(binary.BigEndian.Uint32(raw[17:head])), raw: raw[:head], sum: raw[head:],
	}, nil
}

// opens reports whether the plan issued a ticket.
func (p Plan) opens(t ticket) bool { return hmac.Equal(p.sum(t.raw), t.sum) }
