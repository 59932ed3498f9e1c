package api

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/catalogd/catalogd/api/rest"
)

const (
	oauthPath = "/v1/oauth/tokens"
	// maxFormBytes is far more than any client's credentials and scopes need.
	maxFormBytes = 64 << 10
)

// noTokens is what a client is told instead of getting a token.
const noTokens = "This catalog issues no tokens: set the client's oauth2-server-uri to your identity provider, or use no credential if the catalog needs none"

// GetToken handles POST /v1/oauth/tokens. The protocol deprecates it for removal and
// advises against implementing it: credentials belong to an identity provider, not to a
// catalog. A client that still asks is told, in the form of OAuth 2.0 (RFC 6749, 5.2),
// what to set instead.
func (s *server) GetToken(_ context.Context, req rest.GetTokenRequestObject) (rest.GetTokenResponseObject, error) {
	code := "unsupported_grant_type"
	if req.Body == nil || req.Body.GrantType == "" {
		code = "invalid_request"
	}
	return rest.GetToken400JSONResponse{NoTokensJSONResponse: rest.NoTokensJSONResponse(tokenError(code))}, nil
}

func tokenError(code string) rest.TokenError {
	why := noTokens
	return rest.TokenError{Error: code, ErrorDescription: &why}
}

// tokenForm reads the form of a token request for the generated server, which would take a
// form that cannot be read for a fault of ours, and keep one of any size.
func tokenForm(b bodyBinder) echo.MiddlewareFunc {
	b.limit = min(b.limit, maxFormBytes)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			if c.Path() != oauthPath || r.Method != http.MethodPost {
				return next(c)
			}
			media, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
			if err != nil || media != echo.MIMEApplicationForm {
				return c.JSON(http.StatusBadRequest, tokenError("invalid_request"))
			}
			_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Now().Add(b.timeout)) // a recorder in a test has none
			r.Body = http.MaxBytesReader(c.Response().Writer, r.Body, b.limit)
			if err := r.ParseForm(); err != nil {
				if _, ok := errors.AsType[*http.MaxBytesError](err); ok || errors.Is(err, os.ErrDeadlineExceeded) {
					return b.readError(err)
				}
				return c.JSON(http.StatusBadRequest, tokenError("invalid_request"))
			}
			_ = http.NewResponseController(c.Response().Writer).SetReadDeadline(time.Time{})
			return next(c)
		}
	}
}
