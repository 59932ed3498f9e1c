package catalog

import "strings"

// EncodeNamespace gives the one-column form of a namespace that PyIceberg's SqlCatalog and
// Java's JdbcCatalog use: the levels joined with dots. A level that itself holds a dot, or
// that would read as our own escape, is percent-escaped; both clients then see one odd
// level instead of two wrong ones.
func EncodeNamespace(ns Namespace) string {
	levels := make([]string, len(ns))
	for i, level := range ns {
		levels[i] = encodeLevel(level)
	}
	return strings.Join(levels, ".")
}

// DecodeNamespace is the inverse of [EncodeNamespace]. A percent sign that starts no
// escape of ours is literal, so every string decodes.
func DecodeNamespace(s string) Namespace {
	if s == "" {
		return nil
	}
	levels := strings.Split(s, ".")
	for i, level := range levels {
		levels[i] = decodeLevel(level)
	}
	return levels
}

const (
	escapedDot     = "%2E"
	escapedPercent = "%25"
)

func encodeLevel(level string) string {
	if !strings.Contains(level, ".") && !readsAsEscape(level) {
		return level
	}
	var b strings.Builder
	for i := range len(level) {
		switch {
		case level[i] == '.':
			b.WriteString(escapedDot)
		case level[i] == '%' && isEscape(level[i:]):
			b.WriteString(escapedPercent)
		default:
			b.WriteByte(level[i])
		}
	}
	return b.String()
}

func decodeLevel(level string) string {
	if !readsAsEscape(level) {
		return level
	}
	var b strings.Builder
	for i := 0; i < len(level); i++ {
		if level[i] != '%' || !isEscape(level[i:]) {
			b.WriteByte(level[i])
			continue
		}
		if level[i:i+3] == escapedDot {
			b.WriteByte('.')
		} else {
			b.WriteByte('%')
		}
		i += 2
	}
	return b.String()
}

// readsAsEscape reports whether level holds a sequence that decoding would replace.
func readsAsEscape(level string) bool {
	return strings.Contains(level, escapedDot) || strings.Contains(level, escapedPercent)
}

func isEscape(s string) bool {
	return strings.HasPrefix(s, escapedDot) || strings.HasPrefix(s, escapedPercent)
}
