// Package mvrest holds the models and the server that are generated from
// openapi/mv.yaml. Nothing but this file is written by hand.
package mvrest

//go:generate go tool oapi-codegen -config config.yaml ../../openapi/mv.yaml
