// Package rck runs Apache Iceberg's REST compatibility kit (RCK) against catalogd, and
// compares catalogd's documents with those of the reference server.
//
// Both are Java: see README.md in the folder above for what they need.
package rck
