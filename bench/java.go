package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// mavenPatience covers fetching the jars, about 120 MB.
const mavenPatience = 5 * time.Minute

// referenceClass is the server in Apache Iceberg's tests.
const referenceClass = "org.apache.iceberg.rest.RESTCatalogServer"

// referenceCommand is how the reference server is run. Its jars are those of the
// compatibility kit.
func referenceCommand(ctx context.Context) ([]string, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, errors.New("there is no java")
	}
	path, err := classPath(ctx)
	if err != nil {
		return nil, err
	}
	return []string{java, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", path, referenceClass}, nil
}

// classPath asks Maven, once for each version of the list of jars.
func classPath(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mavenPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/catalogd/catalogd/conformance/rck").Output()
	if err != nil {
		return "", fmt.Errorf("find the kit's folder: %w", err)
	}
	pom := filepath.Join(strings.TrimSpace(string(out)), "pom.xml")
	text, err := os.ReadFile(pom)
	if err != nil {
		return "", err
	}
	kept := keptPath(text)
	if path, ok := readPath(kept); ok {
		return path, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("there is no mvn")
	}
	made, err := resolve(ctx, mvn, pom)
	if err != nil {
		return "", err
	}
	if kept != "" { // to save the next run some seconds; it works without
		_ = os.MkdirAll(filepath.Dir(kept), 0o755)
		_ = os.WriteFile(kept, []byte(made), 0o644)
	}
	return made, nil
}

// keptPath is the file that an earlier run left for the same list, empty without a home.
func keptPath(pom []byte) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(pom)
	return filepath.Join(cache, "catalogd", "bench", "classpath-"+hex.EncodeToString(sum[:6]))
}

// readPath reads a class path whose jars all exist.
func readPath(name string) (string, bool) {
	text, err := os.ReadFile(name)
	if err != nil || len(text) == 0 {
		return "", false
	}
	for _, jar := range filepath.SplitList(string(text)) {
		if _, err := os.Stat(jar); err != nil {
			return "", false
		}
	}
	return string(text), true
}

func resolve(ctx context.Context, mvn, pom string) (string, error) {
	dir, err := os.MkdirTemp("", "catalogd-bench-mvn-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an empty folder, nearly
	name := filepath.Join(dir, "jars")
	cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--file", pom, "-Dstyle.color=never",
		"dependency:build-classpath", "-Dmdep.outputFile="+name, "-Dmdep.pathSeparator="+string(filepath.ListSeparator))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mvn: %w: %s", err, firstLine(string(out)))
	}
	path, ok := readPath(name)
	if !ok {
		return "", errors.New("mvn names jars that do not exist")
	}
	return path, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
