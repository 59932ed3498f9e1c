package duckdb

import "syscall"

// isolate puts a child into its own process group, so that a Ctrl-C at the terminal
// reaches the server only, and has the kernel kill it when the thread that started it
// ends. [spawner] keeps that thread for as long as the engine lives.
func isolate() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
