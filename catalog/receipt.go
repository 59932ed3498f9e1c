package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
)

// ReceiptLifetime is how long a repeated request is recognised. It is announced in
// /v1/config as idempotency-key-lifetime.
const ReceiptLifetime = 30 * time.Minute

// Receipt stands for a request that its client may send again, because it did not get
// the answer (REST specification, header Idempotency-Key). It travels in the context: the
// [Store] writes it in the transaction of the change, so that a change and the knowledge
// of its outcome exist together or not at all.
type Receipt struct {
	Key uuid.UUID
	// Digest is of the whole request: a key that comes with another one was used twice.
	Digest [32]byte
	// Outcome is filled in before the transaction.
	Outcome Outcome
	// Stored says that a transaction with it was committed.
	Stored bool
}

// Outcome is what has to be known to give the same answer again.
type Outcome struct {
	// MetadataLocation is the file that the answer returned, if it returned one.
	MetadataLocation string
	// Detail is the rest of the answer, if there is any, as JSON.
	Detail json.RawMessage
	// Err is the refusal, nil for a success.
	Err *Error
}

type receiptKey struct{}

// WithReceipt returns a context whose change can be repeated without effect.
func WithReceipt(ctx context.Context, r *Receipt) context.Context {
	return context.WithValue(ctx, receiptKey{}, r)
}

// ReceiptOf returns the receipt of ctx, nil if there is none.
func ReceiptOf(ctx context.Context) *Receipt {
	r, _ := ctx.Value(receiptKey{}).(*Receipt)
	return r
}

// ErrRepeated is returned by a [Store] whose transaction found its receipt written
// already: nothing was changed, and the outcome can be recalled.
var ErrRepeated = errors.New("the request was carried out before")

// answersWith notes the metadata file that the answer to the request of ctx will return.
func answersWith(ctx context.Context, metadataLocation string) {
	if r := ReceiptOf(ctx); r != nil {
		r.Outcome = Outcome{MetadataLocation: metadataLocation}
	}
}

// Receipts is where outcomes are kept.
type Receipts interface {
	// Recall returns what is known of the receipt's key, found false if nothing. It is
	// KindInvalid if the key belongs to another request.
	Recall(ctx context.Context, warehouse string, r *Receipt) (o Outcome, found bool, err error)
	// Remember writes a receipt of a request that changed nothing. It fails with
	// ErrRepeated if there is one.
	Remember(ctx context.Context, warehouse string, r *Receipt) error
}

// once carries out a request unless it was carried out before. again rebuilds its answer.
func once[T any](ctx context.Context, s *Service, warehouse string, run func() (T, error), again func(Outcome) (T, error)) (T, error) {
	r := ReceiptOf(ctx)
	if r == nil || r.Stored {
		return run()
	}
	recall := func() (out T, found bool, err error) {
		o, found, err := s.store.Recall(ctx, warehouse, r)
		switch {
		case err != nil || !found:
			return out, found, err
		case o.Err != nil:
			return out, true, o.Err
		}
		out, err = again(o)
		return out, true, err
	}
	out, found, err := recall()
	if err != nil || found {
		return out, err
	}
	replay := func(own T, ownErr error) (T, error) {
		if out, found, err := recall(); err != nil || found {
			return out, err
		}
		return own, ownErr
	}
	if out, err = run(); r.Stored {
		return out, err
	}
	if errors.Is(err, ErrRepeated) {
		return replay(out, err)
	}
	// Nothing was changed. The same request might now be refused for what its first copy
	// did, so whichever wrote its receipt first is right.
	r.Outcome.Err = nil
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Kind.final() {
			return out, err
		}
		r.Outcome = Outcome{Err: e}
	}
	if wErr := s.store.Remember(ctx, warehouse, r); errors.Is(wErr, ErrRepeated) {
		return replay(out, err)
	} else if wErr != nil {
		// What is not recorded proves nothing: a refusal may be for what the first copy did.
		return out, wErr
	}
	return out, err
}

// onceOnly is once for requests whose answer is empty.
func onceOnly(ctx context.Context, s *Service, warehouse string, run func() error) error {
	_, err := once(ctx, s, warehouse,
		func() (struct{}, error) { return struct{}{}, run() },
		func(Outcome) (struct{}, error) { return struct{}{}, nil })
	return err
}

// finalKinds are the refusals that a repetition would meet again, by the names under
// which they are stored.
var finalKinds = map[Kind]string{
	KindInvalid: "invalid", KindForbidden: "forbidden", KindNoSuchNamespace: "no-such-namespace", KindNoSuchTable: "no-such-table",
	KindNoSuchView: "no-such-view", KindNotFound: "not-found", KindAlreadyExists: "already-exists",
	KindIllegalArgument: "illegal-argument", KindNamespaceNotEmpty: "namespace-not-empty", KindUnprocessable: "unprocessable", KindCommitFailed: "commit-failed", KindConflict: "conflict",
}

func (k Kind) final() bool { return finalKinds[k] != "" }

// FinalName is the stored name of a refusal that a repetition gets again.
func (k Kind) FinalName() string { return finalKinds[k] }

// FinalKind is the kind with a stored name; KindInternal for a name of a later version.
func FinalKind(name string) Kind {
	for k, n := range finalKinds {
		if n == name {
			return k
		}
	}
	return KindInternal
}

// loadedAgain rebuilds the answer of a request that returned metadata.
func (s *Service) loadedAgain(ctx context.Context, warehouse string, id TableIdent, typ ObjectType) func(Outcome) (Loaded, error) {
	return func(o Outcome) (Loaded, error) {
		row := Pointer{Warehouse: warehouse, Ident: id, Type: typ, MetadataLocation: o.MetadataLocation}
		if o.MetadataLocation == "" && len(o.Detail) == 0 {
			return s.load(ctx, warehouse, id, typ)
		}
		if o.MetadataLocation == "" { // staged
			return Loaded{Pointer: row, Document: NewDocument("", o.Detail, nil)}, nil
		}
		docs, err := s.store.Documents(ctx, []string{o.MetadataLocation})
		if err != nil {
			return Loaded{}, err
		}
		if d, ok := docs[o.MetadataLocation]; ok {
			return Loaded{Pointer: row, Document: &d}, nil
		}
		d, err := s.readDocument(ctx, &row)
		if KindOf(err) == KindNotFound {
			// The specification allows a newer state, and the file of this one is gone.
			return s.load(ctx, warehouse, id, typ)
		}
		return Loaded{Pointer: row, Document: d}, err
	}
}
