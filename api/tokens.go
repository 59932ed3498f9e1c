package api

import (
	"context"

	"github.com/catalogd/catalogd/api/rest"
)

// GetToken handles POST /v1/oauth/tokens. The protocol deprecates it for removal and
// advises against implementing it: credentials belong to an identity provider, not to a
// catalog. A client that still asks is told, in the form of OAuth 2.0 (RFC 6749, 5.2),
// what to set instead.
func (s *server) GetToken(_ context.Context, req rest.GetTokenRequestObject) (rest.GetTokenResponseObject, error) {
	code := "unsupported_grant_type"
	if req.Body == nil || req.Body.GrantType == "" {
		code = "invalid_request"
	}
	why := "This catalog issues no tokens: set the client's oauth2-server-uri to your identity provider, or use no credential if the catalog needs none"
	return rest.GetToken400JSONResponse{NoTokensJSONResponse: rest.NoTokensJSONResponse{Error: code, ErrorDescription: &why}}, nil
}
