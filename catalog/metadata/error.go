package metadata

import (
	"fmt"
	"strings"
)

// Error says why a document, an update or a requirement was refused.
type Error struct {
	// Conflict is true when the request was sound but the document has moved on: the
	// client should refresh and retry (409). Otherwise the request itself is wrong (400).
	Conflict bool
	// Msg is safe to show to a client. Texts that Java clients look for are Java's.
	Msg string
}

func (e *Error) Error() string { return e.Msg }

// invalid returns the error for a request that can't succeed however often it is sent.
func invalid(format string, args ...any) *Error {
	return &Error{Msg: fmt.Sprintf(format, args...)}
}

// conflict returns the error for a request that was based on an older document.
func conflict(format string, args ...any) *Error {
	return &Error{Conflict: true, Msg: fmt.Sprintf(format, args...)}
}

// maxQuoted bounds how much of a client's own JSON an error message repeats.
const maxQuoted = 200

// quoted shortens raw for use in a message.
func quoted(raw []byte) string {
	if len(raw) <= maxQuoted {
		return strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	return strings.ToValidUTF8(string(raw[:maxQuoted]), "\uFFFD") + "..."
}

// at prefixes the message of err with where it happened.
func at(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	where := fmt.Sprintf(format, args...)
	if e, ok := err.(*Error); ok { //nolint:errorlint // the package makes only bare *Error values
		return &Error{Conflict: e.Conflict, Msg: where + ": " + e.Msg}
	}
	return invalid("%s: %s", where, err.Error())
}
