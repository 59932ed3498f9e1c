//go:build !linux

package pgserver

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent has no counterpart here: an orphan is found and stopped by the next Start.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}

// descriptorPath has no counterpart here; the empty answer means so.
func descriptorPath(int) string { return "" }

// serverProcesses trusts postmaster.pid as far as the process it names is a postgres.
func serverProcesses(dataDir string) []int {
	pid := postmasterPID(dataDir)
	if pid <= 0 {
		return nil
	}
	out, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	if err != nil || !strings.Contains(string(out), "post") {
		return nil
	}
	return []int{pid}
}
