//go:build !linux

package main

import "syscall"

// dieWithParent can only keep the terminal's signals away from the server here.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
