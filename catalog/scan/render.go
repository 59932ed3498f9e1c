package scan

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// appendValue writes a value in Iceberg's JSON single-value form; nil and what has none
// is null.
func appendValue(dst []byte, typ iceberg.Type, v any) []byte {
	switch x := v.(type) {
	case bool:
		return strconv.AppendBool(dst, x)
	case string:
		return appendString(dst, x)
	case []byte:
		return appendHex(dst, x)
	case [16]byte:
		return appendString(dst, uuid.UUID(x).String())
	case float64:
		return appendFloat(dst, typ, x)
	case *big.Int:
		if d, ok := typ.(iceberg.DecimalType); ok {
			return appendString(dst, decimalText(x, d.Scale()))
		}
	case int64:
		return appendInt(dst, typ, x)
	}
	return append(dst, "null"...)
}

// appendHex writes bytes as the specification does, in capital letters.
func appendHex(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = append(dst, strings.ToUpper(hex.EncodeToString(b))...)
	return append(dst, '"')
}

// appendFloat always writes a fraction: Java reads no whole number as a float.
func appendFloat(dst []byte, typ iceberg.Type, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	bits := 64
	if _, single := typ.(iceberg.Float32Type); single {
		bits = 32
	}
	text := strconv.FormatFloat(f, 'g', -1, bits)
	dst = append(dst, text...)
	if !strings.ContainsAny(text, ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

func appendInt(dst []byte, typ iceberg.Type, n int64) []byte {
	const stamp = "2006-01-02T15:04:05"
	var text string
	switch typ.(type) {
	case iceberg.DateType:
		text = time.Unix(0, 0).UTC().AddDate(0, 0, int(n)).Format(time.DateOnly)
	case iceberg.TimeType:
		text = time.UnixMicro(n).UTC().Format("15:04:05.000000")
	case iceberg.TimestampType:
		text = time.UnixMicro(n).UTC().Format(stamp + ".000000")
	case iceberg.TimestampTzType:
		text = time.UnixMicro(n).UTC().Format(stamp+".000000") + "+00:00"
	case iceberg.TimestampNsType:
		text = time.Unix(0, n).UTC().Format(stamp + ".000000000")
	case iceberg.TimestampTzNsType:
		text = time.Unix(0, n).UTC().Format(stamp+".000000000") + "+00:00"
	default:
		return strconv.AppendInt(dst, n, 10)
	}
	dst = append(dst, '"')
	dst = append(dst, text...)
	return append(dst, '"')
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

// appendString quotes a text. Most are paths, which need no escapes.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			raw, err := json.Marshal(s)
			if err != nil {
				return append(dst, `""`...) // a string always encodes
			}
			return append(dst, raw...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendJSON writes a filter in the spelling that every client reads.
func (e *expr) appendJSON(dst []byte) []byte {
	switch e.op {
	case opTrue:
		return append(dst, "true"...)
	case opFalse:
		return append(dst, "false"...)
	case opAnd, opOr:
		for _, k := range e.kids[:len(e.kids)-1] {
			dst = append(dst, `{"type":"`...)
			dst = append(dst, opNames[e.op]...)
			dst = append(dst, `","left":`...)
			dst = k.appendJSON(dst)
			dst = append(dst, `,"right":`...)
		}
		dst = e.kids[len(e.kids)-1].appendJSON(dst)
		for range e.kids[1:] {
			dst = append(dst, '}')
		}
		return dst
	default:
		return e.pred.appendJSON(dst)
	}
}

func (p *predicate) appendJSON(dst []byte) []byte {
	if p.op == opOpaque {
		return append(dst, p.raw...)
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, opNames[p.op]...)
	dst = append(dst, `","term":`...)
	if p.term.form == formIdentity {
		dst = appendString(dst, p.col.name)
	} else {
		dst = append(dst, `{"type":"transform","transform":"`...)
		dst = append(dst, p.term.name()...)
		dst = append(dst, `","term":`...)
		dst = append(appendString(dst, p.col.name), '}')
	}
	switch {
	case p.op.unary():
	case p.op.set():
		dst = append(dst, `,"values":[`...)
		for i, l := range p.lits {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, p.typ, l)
		}
		dst = append(dst, ']')
	default:
		dst = appendValue(append(dst, `,"value":`...), p.typ, p.lits[0])
	}
	return append(dst, '}')
}

// formNames are the transforms as filters name them.
var formNames = [...]string{
	formIdentity: "identity", formBucket: "bucket", formTruncate: "truncate",
	formYear: "year", formMonth: "month", formDay: "day", formHour: "hour",
}

func (t transform) name() string {
	if t.form == formBucket || t.form == formTruncate {
		return formNames[t.form] + "[" + strconv.Itoa(t.width) + "]"
	}
	return formNames[t.form]
}
