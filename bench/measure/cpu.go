package measure

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of /proc/<pid>/stat, the same on every Linux.
const tick = 10 * time.Millisecond

// Process is a Meter of one process, without its children.
func Process(pid int) Meter {
	return func(context.Context) (time.Duration, error) { return processCPU(pid) }
}

// Processes adds up processes that come and go, such as the connections of a database.
// list returns those of the moment; the time of one that has ended stays counted as far
// as it was seen.
func Processes(list func(context.Context) ([]int, error)) Meter {
	seen := map[int]time.Duration{}
	return func(ctx context.Context) (time.Duration, error) {
		pids, err := list(ctx)
		if err != nil {
			return 0, err
		}
		for _, pid := range pids {
			if d, err := processCPU(pid); err == nil {
				seen[pid] = d
			}
		}
		var total time.Duration
		for _, d := range seen {
			total += d
		}
		return total, nil
	}
}

func processCPU(pid int) (time.Duration, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(line)
}

// Positions of user and system time behind the program's name, which is in parentheses
// and may hold any character.
const (
	userTimeField   = 11
	systemTimeField = 12
)

func parseStat(line []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(line, ')')
	fields := bytes.Fields(line[end+1:])
	if end < 0 || len(fields) <= systemTimeField {
		return 0, fmt.Errorf("not a line of /proc/<pid>/stat: %q", line)
	}
	var ticks int64
	for _, i := range []int{userTimeField, systemTimeField} {
		n, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("not a line of /proc/<pid>/stat: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// LoadAverage is the machine's, over one minute; negative where the system does not tell.
func LoadAverage() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	one, _, _ := bytes.Cut(data, []byte(" "))
	v, err := strconv.ParseFloat(string(one), 64)
	if err != nil {
		return -1
	}
	return v
}
