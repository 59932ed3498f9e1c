package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Memory is what a process keeps in RAM, in bytes.
type Memory struct {
	Resident int64 // now
	Peak     int64 // at most, since the process began or its peak was reset
}

// ProcessMemory reads the memory of a process.
func ProcessMemory(pid int) (Memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	return parseStatus(text)
}

// ResetPeak makes a process's peak what it keeps now. The error says that the kernel does
// not allow it.
func ResetPeak(pid int) error {
	const peakOnly = "5"
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(peakOnly), 0)
}

func parseStatus(text []byte) (m Memory, err error) {
	if m.Resident, err = kilobytes(text, "VmRSS:"); err != nil {
		return m, err
	}
	m.Peak, err = kilobytes(text, "VmHWM:")
	return m, err
}

func kilobytes(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == name && string(fields[2]) == "kB" {
			n, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("there is no %s in /proc/<pid>/status", name)
}
