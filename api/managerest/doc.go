// Package managerest holds the models and the server that are generated from
// openapi/manage.yaml. Nothing but this file is written by hand.
package managerest

//go:generate go tool oapi-codegen -config config.yaml ../../openapi/manage.yaml
