// Package rest holds the models and the server that are generated from
// openapi/catalog.yaml. Nothing but this file is written by hand.
package rest

//go:generate go tool oapi-codegen -config config.yaml ../../openapi/catalog.yaml
