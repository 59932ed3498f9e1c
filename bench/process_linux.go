package main

import "syscall"

// dieWithParent makes the kernel end a server whose parent was killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
