package sqltext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError says where a text is not one query of its dialect.
type SyntaxError struct {
	Offset int // byte offset
	Line   int // from 1
	Column int // in characters, from 1
	Msg    string
}

// Error names the position and what is wrong there.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// syntaxError builds the error of a byte offset.
func syntaxError(text string, offset int, format string, args ...any) *SyntaxError {
	line, column := position(text, offset)
	return &SyntaxError{Offset: offset, Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
}

// position returns the line and column of a byte offset, both from 1.
func position(text string, offset int) (line, column int) {
	before := text[:min(max(offset, 0), len(text))]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

func quoteRune(r rune) string { return strconv.QuoteRune(r) }
