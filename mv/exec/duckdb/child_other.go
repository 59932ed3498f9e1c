//go:build !linux

package duckdb

import "syscall"

// isolate has no portable setting: the child ends when its stdin does.
func isolate() *syscall.SysProcAttr { return nil }
