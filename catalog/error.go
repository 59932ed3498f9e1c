package catalog

import (
	"errors"
	"fmt"
)

// Kind classifies a failure by what the caller may do about it. Package api owns the
// only translation from a Kind to an HTTP status and an Iceberg exception name.
type Kind uint8

// The kinds. KindInternal is the zero value so that an unclassified error stays private.
const (
	KindInternal           Kind = iota
	KindInvalid                 // the request is malformed or names something impossible
	KindIllegalArgument         // a view's document cannot become what the request asks for
	KindForbidden               // the object exists, but may not be changed this way
	KindNoSuchWarehouse         // no warehouse has that name
	KindNoSuchNamespace         // no namespace has that name
	KindNoSuchTable             // no table has that name
	KindNoSuchView              // no view has that name
	KindNoSuchFunction          // no function has that name
	KindNoSuchPlan              // no scan plan has that id
	KindNoSuchPlanTask          // no page of a scan plan has that token
	KindNotFound                // a file or another thing that the request names is missing
	KindAlreadyExists           // the name is taken
	KindNamespaceNotEmpty       // the namespace still holds tables, views or namespaces
	KindUnprocessable           // well-formed, but contradicts itself
	KindCommitFailed            // a requirement did not hold, nothing changed: rebase and retry
	KindConflict                // refused because of the state of something else; retrying alone does not help
	KindCommitStateUnknown      // COMMIT was sent and its outcome is not known
	KindTooLarge                // the request is over a size limit
	KindUnavailable             // nothing was changed; retry later
	numKinds
)

// NumKinds lets package api prove that its wire table is complete.
const NumKinds = int(numKinds)

// Error is the one error type that crosses a package boundary in catalogd.
type Error struct {
	Kind Kind
	Msg  string // safe to show to a client: what is wrong, where, what to do
	Err  error  // cause; logged, never sent
}

// Errorf returns an *Error of kind k. Attach a cause with [Error.Because].
func Errorf(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Msg: fmt.Sprintf(format, args...)}
}

// Because returns a copy of e that carries cause.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.Err = cause
	return &c
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	return e.Msg + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf reports the kind of the outermost *Error in err's chain, KindInternal if there
// is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return KindInternal
}
