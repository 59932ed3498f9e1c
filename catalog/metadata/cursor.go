package metadata

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds nesting so that a hostile document can't exhaust the stack. A schema
// spends three levels on each nested struct, so this still allows 170 of them.
const maxDepth = 512

// cursor walks JSON text once and validates it on the way. It hands out sub-slices of
// the text and never decodes a value that its caller does not ask for.
type cursor struct {
	b     []byte
	i     int
	depth int
}

// validText reports malformed UTF-8 up front, so that the scan itself may treat every
// byte above 0x7F as the inside of a string.
func validText(b []byte) error {
	if !utf8.Valid(b) {
		return invalid("Cannot parse JSON: invalid UTF-8")
	}
	return nil
}

func (c *cursor) fail(what string) error {
	if c.i >= len(c.b) {
		return invalid("Cannot parse JSON: unexpected end, expected %s", what)
	}
	return invalid("Cannot parse JSON: expected %s at byte %d", what, c.i)
}

func (c *cursor) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

// peek returns the next significant byte, 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.i >= len(c.b) {
		return 0
	}
	return c.b[c.i]
}

// open consumes the bracket that begins an object or array and reports whether it has
// a first entry; an empty one is consumed whole.
func (c *cursor) open(begin, end byte) (more bool, err error) {
	if c.peek() != begin {
		return false, c.fail("'" + string(begin) + "'")
	}
	if c.depth++; c.depth > maxDepth {
		return false, invalid("Cannot parse JSON: nested deeper than %d levels", maxDepth)
	}
	c.i++
	if c.peek() == end {
		c.i++
		c.depth--
		return false, nil
	}
	return true, nil
}

// more consumes what follows an entry: a comma (true) or the closing bracket (false).
func (c *cursor) more(end byte) (bool, error) {
	switch c.peek() {
	case ',':
		c.i++
		return true, nil
	case end:
		c.i++
		c.depth--
		return false, nil
	}
	return false, c.fail("',' or '" + string(end) + "'")
}

// key consumes a member's name and colon and returns the name with its quotes.
func (c *cursor) key() ([]byte, error) {
	if c.peek() != '"' {
		return nil, c.fail("a member name")
	}
	start := c.i
	if err := c.str(); err != nil {
		return nil, err
	}
	name := c.b[start:c.i:c.i]
	if c.peek() != ':' {
		return nil, c.fail("':'")
	}
	c.i++
	return name, nil
}

// value consumes one value and returns its bytes, without surrounding space.
func (c *cursor) value() ([]byte, error) {
	ch := c.peek()
	start := c.i
	var err error
	switch {
	case ch == '"':
		err = c.str()
	case ch == '{':
		err = c.object()
	case ch == '[':
		err = c.array()
	case ch == '-' || (ch >= '0' && ch <= '9'):
		err = c.number()
	case ch == 't':
		err = c.literal("true")
	case ch == 'f':
		err = c.literal("false")
	case ch == 'n':
		err = c.literal("null")
	default:
		err = c.fail("a value")
	}
	if err != nil {
		return nil, err
	}
	return c.b[start:c.i:c.i], nil
}

func (c *cursor) object() error {
	more, err := c.open('{', '}')
	for more && err == nil {
		if _, err = c.key(); err != nil {
			return err
		}
		if _, err = c.value(); err != nil {
			return err
		}
		more, err = c.more('}')
	}
	return err
}

func (c *cursor) array() error {
	more, err := c.open('[', ']')
	for more && err == nil {
		if _, err = c.value(); err != nil {
			return err
		}
		more, err = c.more(']')
	}
	return err
}

func (c *cursor) literal(word string) error {
	if len(c.b)-c.i < len(word) || string(c.b[c.i:c.i+len(word)]) != word {
		return c.fail("a value")
	}
	c.i += len(word)
	return nil
}

// digits consumes at least one digit.
func (c *cursor) digits() error {
	start := c.i
	for c.i < len(c.b) && c.b[c.i] >= '0' && c.b[c.i] <= '9' {
		c.i++
	}
	if c.i == start {
		return c.fail("a digit")
	}
	return nil
}

func (c *cursor) number() error {
	if c.b[c.i] == '-' {
		c.i++
	}
	if c.i < len(c.b) && c.b[c.i] == '0' {
		c.i++ // nothing may follow a leading zero but a fraction or an exponent
	} else if err := c.digits(); err != nil {
		return err
	}
	if c.i < len(c.b) && c.b[c.i] == '.' {
		c.i++
		if err := c.digits(); err != nil {
			return err
		}
	}
	if c.i < len(c.b) && (c.b[c.i] == 'e' || c.b[c.i] == 'E') {
		c.i++
		if c.i < len(c.b) && (c.b[c.i] == '+' || c.b[c.i] == '-') {
			c.i++
		}
		return c.digits()
	}
	return nil
}

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// str consumes a string. Most of a metadata document is the inside of strings, so eight
// bytes at a time are tested for a quote, a backslash or a control character.
func (c *cursor) str() error {
	b, i := c.b, c.i+1
	for {
		for len(b)-i >= 8 {
			x := binary.LittleEndian.Uint64(b[i:])
			q, s := x^(everyByte*'"'), x^(everyByte*'\\')
			hit := ((q-everyByte)&^q | (s-everyByte)&^s | (x-everyByte*0x20)&^x) & highBits
			if hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			c.i = len(b)
			return c.fail("'\"'")
		}
		switch ch := b[i]; {
		case ch == '"':
			c.i = i + 1
			return nil
		case ch == '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				c.i = i
				return c.fail("a string escape")
			}
			i += n
		case ch < 0x20:
			c.i = i
			return c.fail("no control character in a string")
		default:
			i++
		}
	}
}

// escapeLen returns the length of the escape sequence at the start of b, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, h := range b[2:6] {
			hex := (h >= '0' && h <= '9') || (h >= 'a' && h <= 'f') || (h >= 'A' && h <= 'F')
			if !hex {
				return 0
			}
		}
		return 6
	}
	return 0
}

// end checks that nothing but space is left.
func (c *cursor) end() error {
	if c.peek() != 0 || c.i < len(c.b) {
		return c.fail("the end")
	}
	return nil
}
