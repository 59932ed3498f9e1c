package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/catalogd/catalogd/bench/client"
	"github.com/catalogd/catalogd/bench/measure"
)

const memoryGoal = "memory: growth of the process while its cache overflows, times the cache limit"

// memoryBytes is the size of a table's metadata. Most of it does not compress: what the
// cache counts is what it holds, and it has to overflow.
const memoryBytes = 1 << 20

// memoryPasses is how often all tables are loaded: after the first pass nothing may grow.
const memoryPasses = 2

// memoryResult is the memory of a server that loads more than its cache may hold.
type memoryResult struct {
	Tables      int     `json:"tables"`
	Stored      int64   `json:"stored_bytes"` // of all documents, compressed
	CacheLimit  int64   `json:"cache_limit_bytes"`
	Idle        int64   `json:"idle_resident_bytes"`
	Peaks       []int64 `json:"peak_resident_bytes"` // in each pass
	HeapInUse   int64   `json:"go_heap_in_use_bytes"`
	LoadsPerSec float64 `json:"loads_per_second"`
}

// memory loads large tables in a loop, on a server of their own.
func (b *bench) memory(ctx context.Context) error {
	var env []string
	limit := int64(256 << 20)
	if b.scale.memoryCache > 0 {
		limit = b.scale.memoryCache
		env = append(env, "CATALOGD_CACHE_BYTES="+strconv.FormatInt(limit, 10))
	}
	t, err := b.startCatalogd(ctx, "catalogd, memory", memoryDatabase, env...)
	if err != nil {
		return err
	}
	if err := t.catalog.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	m := &memoryBench{bench: b, target: t, out: memoryResult{CacheLimit: limit}, seed: maphash.MakeSeed()}
	b.rep.printf("\nmemory: tables of %d MB metadata are loaded in turn by %d clients; the cache limit is %d MiB\n", memoryBytes>>20, mostClients, limit>>20)
	idle, err := measure.ProcessMemory(t.process.cmd.Process.Pid)
	if err != nil {
		b.rep.leave("memory cannot be read here: "+err.Error(), check{measure: memoryGoal, bound: atMost(memoryTimes)})
		return t.process.stop()
	}
	m.out.Idle = idle.Resident
	if err := m.fill(ctx); err != nil {
		return err
	}
	for range memoryPasses {
		if err := m.pass(ctx); err != nil {
			return err
		}
	}
	m.finish(ctx)
	return t.process.stop()
}

type memoryBench struct {
	*bench
	target *target
	out    memoryResult
	seed   maphash.Seed

	template map[string]json.RawMessage
	tables   []memoryTable
	loads    int
	loading  time.Duration
}

type memoryTable struct {
	name, uuid string
	hash       uint64 // of the first answer, once it was found right
}

// fill registers files until there are enough, or the time for it is over.
func (m *memoryBench) fill(ctx context.Context) error {
	w, err := client.NewWriter(ctx, m.target.catalog, namespace, "memory_template")
	if err != nil {
		return err
	}
	conn := client.Dial(m.target.catalog.Address())
	defer conn.Close()
	if _, err := w.Append(ctx, conn); err != nil {
		return err
	}
	reply, _, err := w.Load(ctx, conn, false)
	if err != nil {
		return err
	}
	answer, err := reply.Table()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Metadata, &m.template); err != nil {
		return err
	}
	m.tables = make([]memoryTable, m.scale.memoryTables)
	begin := time.Now()
	done, err := m.each(ctx, func(ctx context.Context, i int, _ *client.Conn) error {
		if time.Since(begin) > m.scale.memoryTime {
			return errTimeIsUp
		}
		return m.register(ctx, i)
	})
	if errors.Is(err, errTimeIsUp) {
		m.rep.note("after %v %d of %d tables are made: these it is", m.scale.memoryTime, done, len(m.tables))
		err = nil
	}
	m.tables = m.tables[:done]
	m.out.Tables = done
	return err
}

var errTimeIsUp = errors.New("the time is up")

// each calls do for the tables in order, several at a time, and returns how many of the
// first ones are done.
func (m *memoryBench) each(ctx context.Context, do func(ctx context.Context, i int, conn *client.Conn) error) (int, error) {
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		mu    sync.Mutex
		first error
		done  = len(m.tables)
	)
	for range mostClients {
		wg.Go(func() {
			conn := client.Dial(m.target.catalog.Address())
			defer conn.Close()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(m.tables) {
					return
				}
				if err := do(ctx, i, conn); err != nil {
					mu.Lock()
					defer mu.Unlock()
					done = min(done, i)
					if first == nil {
						first = err
					}
					return
				}
			}
		})
	}
	wg.Wait()
	return done, first
}

// register writes a metadata file and gives it a name.
func (m *memoryBench) register(ctx context.Context, i int) error {
	t := memoryTable{name: fmt.Sprintf("memory_%04d", i), uuid: uuid.NewString()}
	folder := filepath.Join(m.warehouse(memoryDatabase), "large", t.name)
	body, err := largeMetadata(m.template, t.uuid, "file://"+folder, memoryBytes)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(folder, "metadata"), 0o755); err != nil {
		return err
	}
	file := filepath.Join(folder, "metadata", "00000-"+t.uuid+".metadata.json")
	if err := os.WriteFile(file, body, 0o644); err != nil {
		return err
	}
	m.tables[i] = t
	return m.target.catalog.Register(ctx, namespace, t.name, "file://"+file)
}

// largeMetadata is a table's metadata with properties that make it as large as asked for
// and that hardly compress.
func largeMetadata(template map[string]json.RawMessage, id, location string, size int) ([]byte, error) {
	const property = 4 << 10
	properties := map[string]string{}
	for i := range size / property {
		noise := make([]byte, property*3/4)
		for j := range noise {
			noise[j] = byte(rand.Uint32()) //nolint:gosec // noise is no secret
		}
		properties[fmt.Sprintf("noise-%04d", i)] = base64.StdEncoding.EncodeToString(noise)
	}
	out := make(map[string]any, len(template))
	for name, value := range template {
		out[name] = value
	}
	out["table-uuid"], out["location"], out["properties"] = id, location, properties
	return json.Marshal(out)
}

// pass loads every table once.
func (m *memoryBench) pass(ctx context.Context) error {
	pid := m.target.process.cmd.Process.Pid
	if err := measure.ResetPeak(pid); err != nil {
		m.rep.note("the peak of each pass cannot be told apart: %v", err)
	}
	var stored atomic.Int64
	begin := time.Now()
	n, err := m.each(ctx, func(ctx context.Context, i int, conn *client.Conn) error {
		if time.Since(begin) > m.scale.memoryTime {
			return errTimeIsUp
		}
		t := &m.tables[i]
		request := client.NewRequest(m.target.catalog.Address(), http.MethodGet, m.target.catalog.TablePath(namespace, t.name), nil, nil)
		reply, err := conn.Do(ctx, request)
		if err != nil {
			return err
		}
		stored.Add(int64(len(reply.Body)))
		return m.check(t, reply)
	})
	if errors.Is(err, errTimeIsUp) {
		m.rep.note("after %v %d of %d tables are loaded: these it is", m.scale.memoryTime, n, len(m.tables))
		err = nil
	}
	if err != nil {
		return err
	}
	m.loads += n
	m.loading += time.Since(begin)
	m.out.Stored = max(m.out.Stored, stored.Load())
	now, err := measure.ProcessMemory(pid)
	if err != nil {
		return err
	}
	m.out.Peaks = append(m.out.Peaks, now.Peak)
	return nil
}

// check reads the first answer in full; later ones have to be the same.
func (m *memoryBench) check(t *memoryTable, reply client.Reply) error {
	hash := maphash.Bytes(m.seed, reply.Body)
	if t.hash != 0 && t.hash == hash && reply.Status == http.StatusOK {
		return nil
	}
	got, err := reply.Table()
	if err != nil {
		return err
	}
	if t.hash != 0 || got.UUID != t.uuid || !got.HasCurrent || len(got.Metadata) < memoryBytes {
		return fmt.Errorf("table %s: uuid %s with %d bytes, want %s and the answer of before", t.name, got.UUID, len(got.Metadata), t.uuid)
	}
	t.hash = hash
	return nil
}

// memoryTimes allows for the garbage that Go's collector lets pile up before it collects:
// as much as is alive.
const memoryTimes = 2

func (m *memoryBench) finish(ctx context.Context) {
	if m.loading > 0 {
		m.out.LoadsPerSec = float64(m.loads) / m.loading.Seconds()
	}
	var err error
	if m.out.HeapInUse, err = m.heap(ctx); err != nil {
		m.rep.note("the size of the heap is not known: %v", err)
	}
	m.rep.Memory = &m.out
	peak := int64(0)
	for _, p := range m.out.Peaks {
		peak = max(peak, p)
	}
	mib := func(n int64) float64 { return float64(n) / (1 << 20) }
	m.rep.printf("  %d tables, %.0f MiB compressed; cache limit %.0f MiB; resident: %.0f MiB idle, peaks of the passes", m.out.Tables, mib(m.out.Stored), mib(m.out.CacheLimit), mib(m.out.Idle))
	for _, p := range m.out.Peaks {
		m.rep.printf(" %.0f", mib(p))
	}
	m.rep.printf(" MiB; Go heap in use afterwards %.0f MiB; %.0f loads/s\n", mib(m.out.HeapInUse), m.out.LoadsPerSec)
	if m.out.Stored <= m.out.CacheLimit {
		m.rep.leave("the tables that were made fit into the cache", check{measure: memoryGoal, bound: atMost(memoryTimes)})
		return
	}
	growth := ratio(float64(peak-m.out.Idle) / float64(m.out.CacheLimit))
	m.rep.judge(check{memoryGoal, growth, atMost(memoryTimes)}, 0)
}

// heap asks the server what its Go heap takes.
func (m *memoryBench) heap(ctx context.Context) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.target.process.url+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return gauge(text, "go_memstats_heap_inuse_bytes")
}

// gauge finds a value in Prometheus' text format.
func gauge(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 2 && string(fields[0]) == name {
			v, err := strconv.ParseFloat(string(fields[1]), 64)
			return int64(v), err
		}
	}
	return 0, fmt.Errorf("there is no %s", name)
}
