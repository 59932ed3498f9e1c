package pgserver

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// endWithParent makes the kernel send sig to the child when the thread that started it
// ends. The caller keeps that thread alive for as long as the process should live.
func endWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// descriptorPath names an open descriptor of the process that uses the path. It needs no
// right on the folders above, unlike the folder's own path.
func descriptorPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// serverProcesses lists the postgres processes that work in dataDir: a postmaster and its
// backends all have it as working directory, whatever path they were started with.
func serverProcesses(dataDir string) []int {
	want, err := os.Stat(dataDir)
	if err != nil {
		return nil
	}
	procs, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, proc := range procs {
		// A process that ends meanwhile, or that is another user's, is none of ours.
		cwd, err := os.Stat(filepath.Join(proc, "cwd"))
		if err != nil || !os.SameFile(cwd, want) {
			continue
		}
		name, err := os.ReadFile(filepath.Join(proc, "comm"))
		if err != nil || !strings.HasPrefix(string(name), "post") { // postgres, postmaster
			continue
		}
		if state, err := os.ReadFile(filepath.Join(proc, "stat")); err != nil || strings.Contains(string(state), ") Z ") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
