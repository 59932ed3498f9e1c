package duckdb

import (
	"errors"

	"github.com/catalogd/catalogd/catalog"
	"github.com/catalogd/catalogd/mv"
)

// request is what the server asks of a child: one JSON value per line on its stdin.
type request struct {
	Describe *mv.DescribeRequest `json:"describe,omitempty"`
	Run      *mv.Task            `json:"run,omitempty"`
	Progress bool                `json:"progress,omitempty"` // the caller listens
	Last     bool                `json:"last,omitempty"`     // the child ends after this run
}

// response is what a child says: one JSON value per line on its stdout. A child says that
// it is ready at its start and after every run but the last; every request is answered by
// any number of progress messages and then by an error, columns or a result.
type response struct {
	Ready    bool              `json:"ready,omitempty"`
	Progress *mv.Progress      `json:"progress,omitempty"`
	Columns  []mv.EngineColumn `json:"columns,omitempty"`
	Result   *mv.Result        `json:"result,omitempty"`
	Error    *wireError        `json:"error,omitempty"`
	Done     bool              `json:"done,omitempty"`
}

// wireError carries a *catalog.Error between the processes.
type wireError struct {
	Kind  catalog.Kind `json:"kind"`
	Msg   string       `json:"msg"`
	Cause string       `json:"cause,omitempty"`
}

func toWire(err error) *wireError {
	e, ok := errors.AsType[*catalog.Error](err)
	if !ok {
		return &wireError{Kind: catalog.KindInternal, Msg: "the DuckDB engine failed", Cause: err.Error()}
	}
	w := &wireError{Kind: e.Kind, Msg: e.Msg}
	if e.Err != nil {
		w.Cause = e.Err.Error()
	}
	return w
}

func (w *wireError) err() error {
	e := &catalog.Error{Kind: w.Kind, Msg: w.Msg}
	if w.Cause != "" {
		e.Err = errors.New(w.Cause)
	}
	return e
}
