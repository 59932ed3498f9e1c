package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/catalogd/catalogd/api/rest"
	"github.com/catalogd/catalogd/catalog"
)

// wireForm is how a kind of failure looks to a client.
type wireForm struct {
	status    int
	exception string
}

// wire is the only place that knows both our kinds and Iceberg's exception names.
var wire = [catalog.NumKinds]wireForm{
	catalog.KindInternal:           {http.StatusInternalServerError, "InternalServerError"},
	catalog.KindInvalid:            {http.StatusBadRequest, "BadRequestException"},
	catalog.KindIllegalArgument:    {http.StatusBadRequest, "IllegalArgumentException"},
	catalog.KindForbidden:          {http.StatusForbidden, "ForbiddenException"},
	catalog.KindNoSuchWarehouse:    {http.StatusNotFound, "NoSuchWarehouseException"},
	catalog.KindNoSuchNamespace:    {http.StatusNotFound, "NoSuchNamespaceException"},
	catalog.KindNoSuchTable:        {http.StatusNotFound, "NoSuchTableException"},
	catalog.KindNoSuchView:         {http.StatusNotFound, "NoSuchViewException"},
	catalog.KindNoSuchFunction:     {http.StatusNotFound, "NoSuchFunctionException"},
	catalog.KindNoSuchPlan:         {http.StatusNotFound, "NoSuchPlanIdException"},
	catalog.KindNoSuchPlanTask:     {http.StatusNotFound, "NoSuchPlanTaskException"},
	catalog.KindNotFound:           {http.StatusNotFound, "NotFoundException"},
	catalog.KindAlreadyExists:      {http.StatusConflict, "AlreadyExistsException"},
	catalog.KindNamespaceNotEmpty:  {http.StatusConflict, "NamespaceNotEmptyException"},
	catalog.KindUnprocessable:      {http.StatusUnprocessableEntity, "UnprocessableEntityException"},
	catalog.KindCommitFailed:       {http.StatusConflict, commitFailed},
	catalog.KindConflict:           {http.StatusConflict, "ConflictException"},
	catalog.KindCommitStateUnknown: {http.StatusInternalServerError, commitStateUnknown},
	catalog.KindTooLarge:           {http.StatusRequestEntityTooLarge, "RequestTooLargeException"},
	catalog.KindUnavailable:        {http.StatusServiceUnavailable, "ServiceUnavailableException"},
}

const (
	commitFailed       = "CommitFailedException"
	commitStateUnknown = "CommitStateUnknownException"
)

// retryAfter is what a client is told to wait when nothing was changed and trying again
// can help.
const retryAfter = time.Second

// statusClientClosed is logged when the client went away before it got an answer.
const statusClientClosed = 499

// commitRoutes are the operations whose 5xx clients read as "outcome unknown".
var commitRoutes = map[string]bool{
	http.MethodPost + " /v1/:prefix/namespaces/:namespace/tables/:table": true,
	http.MethodPost + " /v1/:prefix/namespaces/:namespace/views/:view":   true,
	http.MethodPost + " /v1/:prefix/transactions/commit":                 true,
}

// httpError is a failure of the HTTP exchange itself, which has no [catalog.Kind].
type httpError struct {
	wireForm
	msg string
}

func (e *httpError) Error() string { return e.msg }

// answer is what a failure becomes on the wire.
type answer struct {
	wireForm
	msg   string
	retry bool
	fault bool // not the client's: logged with an id that the client gets, too
}

// errorHandler is echo's HTTPErrorHandler: every failure leaves through here.
func errorHandler(log *slog.Logger) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		ctx := c.Request().Context()
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			c.Response().Status = statusClientClosed // nobody is there to read an answer
			return
		}
		a := answerTo(err, commitOf(c))
		if a.fault {
			id := uuid.NewString()
			level := slog.LevelError
			if a.retry {
				level = slog.LevelWarn // a lack of something, not a defect
			}
			log.LogAttrs(ctx, level, "request failed", slog.String("error_id", id),
				slog.String("request_id", exchangeOf(ctx).id), slog.String("route", c.Path()), slog.Any("error", err))
			a.msg = fmt.Sprintf("%s (error id %s)", a.msg, id)
		}
		if a.retry {
			c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(int(retryAfter.Seconds())))
		}
		if c.Request().Method == http.MethodHead {
			// The headers are those that a GET would get.
			c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
			_ = c.NoContent(a.status) // fails only if the connection is gone
			return
		}
		_ = c.JSON(a.status, rest.ErrorDocument{Error: rest.ErrorModel{Code: a.status, Type: a.exception, Message: a.msg}})
	}
}

// commit says how a failure is to be worded for clients that commit.
type commit uint8

const (
	noCommit commit = iota
	oneCommit
	// repeatable is a commit with an Idempotency-Key. That this copy of the request changed
	// nothing says nothing about an earlier one, unless the catalog has recorded it.
	repeatable
)

func commitOf(c echo.Context) commit {
	switch {
	case !commitRoutes[c.Request().Method+" "+c.Path()]:
		return noCommit
	case catalog.ReceiptOf(c.Request().Context()) != nil:
		return repeatable
	}
	return oneCommit
}

// answerTo translates a failure. On a commit route the status says whether anything may
// have been changed, see the package comment.
func answerTo(err error, commit commit) answer {
	if e, ok := errors.AsType[*catalog.Error](err); ok {
		a := answer{wireForm: wire[e.Kind], msg: e.Msg, retry: e.Kind == catalog.KindUnavailable}
		a.fault = a.status >= http.StatusInternalServerError
		if a.status < http.StatusInternalServerError || e.Kind == catalog.KindCommitStateUnknown {
			return a
		}
		switch commit {
		case oneCommit:
			a.wireForm = wireForm{http.StatusConflict, commitFailed}
			a.msg = "Nothing was changed: " + a.msg
		case repeatable:
			a.wireForm = wire[catalog.KindCommitStateUnknown]
			a.msg += " with the same Idempotency-Key; whether an earlier copy of this request was carried out is not known"
		case noCommit:
		}
		return a
	}
	if e, ok := errors.AsType[*httpError](err); ok {
		return answer{wireForm: e.wireForm, msg: e.msg}
	}
	if e, ok := errors.AsType[*echo.HTTPError](err); ok && e.Code < http.StatusInternalServerError {
		return answerToEcho(e)
	}
	a := answer{wireForm: wire[catalog.KindInternal], msg: "Internal error", fault: true}
	if commit != noCommit {
		a.wireForm = wire[catalog.KindCommitStateUnknown]
		a.msg = "Internal error during the commit, whose outcome is unknown"
	}
	return a
}

// answerToEcho words what the router and the generated parameter decoding refuse.
func answerToEcho(e *echo.HTTPError) answer {
	switch e.Code {
	case http.StatusNotFound:
		return answer{wireForm: wireForm{e.Code, "NotFoundException"}, msg: "No such endpoint: see the list in /v1/config"}
	case http.StatusMethodNotAllowed:
		return answer{wireForm: wireForm{e.Code, "UnsupportedOperationException"}, msg: "This endpoint does not have that method: see the list in /v1/config"}
	default:
		return answer{wireForm: wireForm{e.Code, wire[catalog.KindInvalid].exception}, msg: fmt.Sprint(e.Message)}
	}
}

func invalid(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.KindInvalid, format, args...)
}
