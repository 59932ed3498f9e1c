package main

import (
	"os"
	"runtime/debug"
)

// workingMemory is what requests and refresh planning take beside the cache.
const workingMemory = 128 << 20

// limitMemory keeps the heap near the size of the document cache. By itself the collector
// lets garbage grow as large as what is live, and most of that is the cache. Whoever sets
// GOMEMLIMIT knows better.
func limitMemory(cacheBytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(cacheBytes))
	}
}

func memoryLimit(cacheBytes int64) int64 {
	cacheBytes = max(cacheBytes, 0)
	return cacheBytes + cacheBytes/4 + workingMemory
}
