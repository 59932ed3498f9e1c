package api

import (
	"hash/crc32"
	"math/bits"
)

// CRC-32 is the remainder of a polynomial division over GF(2). Appending n bytes to a text
// multiplies its polynomial by x^(8n), so the CRC of two texts in a row follows from
// theirs and the length of the second. Bits are reversed, as everywhere in CRC-32: the
// highest bit is the coefficient of x^0.

// xPowers holds x^(2^k) modulo the polynomial.
var xPowers = func() (powers [64]uint32) {
	p := uint32(1) << 30 // x^1
	for k := range powers {
		powers[k] = p
		p = multiply(p, p)
	}
	return powers
}()

// multiply is a·b modulo the polynomial.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		low := b & 1
		b >>= 1
		b ^= crc32.IEEE & -low
	}
	return product
}

// combineCRC is the CRC of two texts in a row: first and second are their CRCs, length is
// that of the second text.
func combineCRC(first, second uint32, length int64) uint32 {
	factor := uint32(1) << 31                     // x^0
	for n := uint64(length); n != 0; n &= n - 1 { //nolint:gosec // a length is not negative
		factor = multiply(xPowers[(bits.TrailingZeros64(n)+3)%64], factor)
	}
	return multiply(factor, first) ^ second
}
