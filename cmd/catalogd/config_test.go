package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestConfig_reportsEveryProblem breaks everything that can be wrong at once.
func TestConfig_reportsEveryProblem(t *testing.T) {
	t.Parallel()
	c := Config{
		DatabaseURL: "postgres://user:hunter2@host:notaport/db", Warehouse: "here", Listen: "8181", WarehouseName: "a/b",
		EngineMemoryBytes: 1, DatabaseConns: 1, LogFormat: "xml", LogLevel: "info",
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("a broken configuration passed")
	}
	flags := []string{
		"--database-url", "--warehouse ", "--listen", "--warehouse-name", "--engine-memory-bytes", "--engine-threads",
		"--refresh-slots", "--database-connections", "--log-format", "--plan-page-files",
	}
	for _, flag := range flags {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not reported in:\n%v", flag, err)
		}
	}
	if got := len(strings.Split(err.Error(), "\n")); got != len(flags) {
		t.Errorf("%d lines, want one for each of %d problems:\n%v", got, len(flags), err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is printed: %v", err)
	}
}

func TestConfig_defaultsLackOnlyWhatNobodyCanGuess(t *testing.T) {
	t.Parallel()
	c := defaults()
	err := c.Validate()
	if err == nil {
		t.Fatal("a server without database and warehouse passed")
	}
	for _, want := range []string{"CATALOGD_DATABASE_URL", "CATALOGD_WAREHOUSE"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in:\n%v", want, err)
		}
	}
	c.DatabaseURL, c.Warehouse = "postgres://localhost/catalogd", "/var/lib/catalogd"
	if err := c.Validate(); err != nil {
		t.Errorf("with both given: %v", err)
	}
}

// TestFromEnv checks who wins, for each kind of flag.
func TestFromEnv(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"CATALOGD_LISTEN": "127.0.0.1:1", "CATALOGD_REFRESH_SLOTS": "7", "CATALOGD_ALLOW_LOCATION": "file:///a,file:///b",
		"CATALOGD_NO_STAT": "true", "CATALOGD_LOG_LEVEL": "debug",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	c := defaults()
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.flags(f)
	if err := f.Parse([]string{"--log-level", "error", "--listen=127.0.0.1:2"}); err != nil {
		t.Fatal(err)
	}
	if err := fromEnv(f, lookup); err != nil {
		t.Fatal(err)
	}
	if c.LogLevel != "error" || c.Listen != "127.0.0.1:2" {
		t.Errorf("log level %s, listen %s: a flag must beat the environment", c.LogLevel, c.Listen)
	}
	if c.RefreshSlots != 7 || !c.NoStat || strings.Join(c.AllowLocations, " ") != "file:///a file:///b" {
		t.Errorf("the environment was not read: %+v", c)
	}
	if c.EngineThreads != defaults().EngineThreads {
		t.Errorf("engine threads = %d without a flag or variable", c.EngineThreads)
	}
}

func TestFromEnv_namesTheVariables(t *testing.T) {
	t.Parallel()
	c := defaults()
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.flags(f)
	env := map[string]string{"CATALOGD_REFRESH_SLOTS": "many", "CATALOGD_CACHE_BYTES": "1GB"}
	err := fromEnv(f, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err == nil {
		t.Fatal("variables that are no numbers passed")
	}
	for name := range env {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}

func TestLocationOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/srv/lake":         "file:///srv/lake",
		"/srv/../srv/lake/": "file:///srv/lake",
		"file:///srv/lake/": "file:///srv/lake",
		"s3://bucket/lake/": "s3://bucket/lake",
	} {
		if got := locationOf(in); got != want {
			t.Errorf("locationOf(%q) = %q, want %q", in, got, want)
		}
	}
}
