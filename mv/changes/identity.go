package changes

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/catalogd/catalogd/catalog"
)

// identityValues gives the partition values of a file that stand for a whole column, in
// Iceberg's JSON single-value form. Files that were written without that column need them.
func (d *document) identityValues(e *entry) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	partition := e.file.Partition()
	for _, f := range e.spec.fields {
		if _, ok := f.transform.(iceberg.IdentityTransform); !ok || f.multi || f.typ == nil {
			continue // a column of no schema is never read
		}
		text, ok := jsonValue(f.typ, partition[f.id])
		if !ok {
			return nil, catalog.Errorf(catalog.KindUnprocessable,
				"partition value of column %d of file %s cannot be read", f.source, e.file.FilePath())
		}
		if out == nil {
			out = make(map[string]json.RawMessage)
		}
		out[strconv.Itoa(f.source)] = text
	}
	return out, nil
}

// jsonValue writes a value as the specification's JSON single-value serialization does.
func jsonValue(typ iceberg.Type, v any) (json.RawMessage, bool) {
	switch x := v.(type) {
	case nil:
		return json.RawMessage("null"), true
	case float32:
		return jsonFloat(float64(x), 32), true
	case float64:
		return jsonFloat(x, 64), true
	}
	n, isDate, ok := normal(v)
	if !ok {
		return nil, false
	}
	if perDay := unitsPerDay(typ); isDate && perDay > 1 {
		if n, ok = times(n, perDay); !ok {
			return nil, false
		}
	}
	text, quoted, ok := plain(typ, n)
	if !ok {
		return nil, false
	}
	if !quoted {
		return json.RawMessage(text), true
	}
	raw, err := json.Marshal(text)
	return raw, err == nil
}

func plain(typ iceberg.Type, v any) (text string, quoted, ok bool) {
	switch x := v.(type) {
	case bool:
		return strconv.FormatBool(x), false, true
	case string:
		return x, true, true
	case []byte:
		return hex.EncodeToString(x), true, true
	case [16]byte:
		if _, isUUID := typ.(iceberg.UUIDType); !isUUID {
			return hex.EncodeToString(x[:]), true, true
		}
		return uuid.UUID(x).String(), true, true
	case *big.Int:
		d, isDecimal := typ.(iceberg.DecimalType)
		return decimalText(x, d.Scale()), true, isDecimal
	case int64:
		text, quoted = temporal(typ, x)
		return text, quoted, true
	default:
		return "", false, false
	}
}

func temporal(typ iceberg.Type, n int64) (text string, quoted bool) {
	const stamp = "2006-01-02T15:04:05"
	switch typ.(type) {
	case iceberg.DateType:
		return time.Unix(n*86_400, 0).UTC().Format(time.DateOnly), true
	case iceberg.TimeType:
		return time.UnixMicro(n).UTC().Format("15:04:05.000000"), true
	case iceberg.TimestampType:
		return time.UnixMicro(n).UTC().Format(stamp + ".000000"), true
	case iceberg.TimestampTzType:
		return time.UnixMicro(n).UTC().Format(stamp+".000000") + "+00:00", true
	case iceberg.TimestampNsType:
		return time.Unix(0, n).UTC().Format(stamp + ".000000000"), true
	case iceberg.TimestampTzNsType:
		return time.Unix(0, n).UTC().Format(stamp+".000000000") + "+00:00", true
	default:
		return strconv.FormatInt(n, 10), false
	}
}

func decimalText(n *big.Int, scale int) string {
	if scale == 0 {
		return n.String()
	}
	digits := new(big.Int).Abs(n).String()
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	sign := ""
	if n.Sign() < 0 {
		sign = "-"
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// jsonFloat quotes what JSON numbers cannot say.
func jsonFloat(f float64, bits int) json.RawMessage {
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.RawMessage(strconv.Quote(text))
	}
	return json.RawMessage(text)
}
