package rck_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kitVersion is the newest version that the kit and the reference server are published in.
const kitVersion = "1.11.0"

// minJava is what the kit's classes are compiled for.
const minJava = 17

// needJava skips the test unless somebody asked for slow suites, and without a Java that
// can run the kit. In CI it fails: a suite that nobody ran must not look like one that
// passed.
func needJava(t *testing.T) {
	t.Helper()
	inCI := os.Getenv("CATALOGD_CI") != "" || os.Getenv("CI") != ""
	if os.Getenv("CATALOGD_SUITES") == "" {
		t.Skip("NOT run, because it is slow: `make conformance` runs it, and so does CATALOGD_SUITES=1")
	}
	var missing []string
	for _, tool := range []string{"java", "javac"} {
		if err := checkJava(t.Context(), tool); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		missing = append(missing, "mvn: "+err.Error())
	}
	if len(missing) == 0 {
		return
	}
	say := fmt.Sprintf("NOT run: it needs a JDK of version %d or later, and Maven (Debian: apt-get install default-jdk-headless maven): %s",
		minJava, strings.Join(missing, "; "))
	if inCI {
		t.Fatal(say)
	}
	t.Skip(say)
}

var javaVersion = regexp.MustCompile(`\b(\d+)[.\d]*`)

func checkJava(ctx context.Context, tool string) error {
	out, err := exec.CommandContext(ctx, tool, "--version").CombinedOutput() // older ones than 9 refuse the flag
	if err != nil {
		return fmt.Errorf("%s --version: %w", tool, err)
	}
	found := javaVersion.FindSubmatch(out)
	if found == nil {
		return fmt.Errorf("%s --version says %q", tool, bytes.TrimSpace(out))
	}
	if n, err := strconv.Atoi(string(found[1])); err != nil || n < minJava {
		return fmt.Errorf("%s is of version %s", tool, found[1])
	}
	return nil
}

// quickJVM are flags for a JVM that does not live long enough to earn back its optimizer.
var quickJVM = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g"}

// javaPath is a class path, resolved once and kept in the user's cache folder.
type javaPath struct {
	client string // version of the client's jars
	dir    string
}

// classPath returns the class path of the kit, the reference server and our classes, with
// a Java client of the given version.
func classPath(t *testing.T, client string) string {
	t.Helper()
	needJava(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir() // no home: it works, but for this run only
	}
	key, err := sourceKey(client)
	if err != nil {
		t.Fatal(err)
	}
	p := javaPath{client: client, dir: filepath.Join(cache, "catalogd", "rck", client+"-"+key)}
	path, err := p.kept()
	if err == nil {
		return path
	}
	began := time.Now()
	// Maven may have to fetch 120 MB.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if path, err = p.make(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("class path for client %s resolved in %v", client, time.Since(began).Round(time.Second))
	return path
}

// sourceKey changes when something does that a class path is made of.
func sourceKey(client string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, client)
	for _, name := range slices.Concat([]string{"pom.xml"}, javaSources()) {
		b, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, name, len(b))
		sum.Write(b)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

func javaSources() []string {
	names, _ := filepath.Glob(filepath.Join("java", "*.java")) // the pattern is good
	return names
}

// kept returns what an earlier run resolved, unless Maven's repository lost a jar since.
func (p javaPath) kept() (string, error) {
	b, err := os.ReadFile(filepath.Join(p.dir, "jars"))
	if err != nil {
		return "", err
	}
	for _, jar := range filepath.SplitList(string(b)) {
		if _, err := os.Stat(jar); err != nil {
			return "", err
		}
	}
	return filepath.Join(p.dir, "classes") + string(filepath.ListSeparator) + string(b), nil
}

// make resolves the jars, compiles our classes, and puts both in place at once: another
// run of the tests may be at the same.
func (p javaPath) make(ctx context.Context) (string, error) {
	parent := filepath.Dir(p.dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(parent, ".making-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }() // gone already if all went well
	jars := filepath.Join(work, "jars")
	err = run(ctx, "mvn", "--batch-mode", "--quiet", "--file", "pom.xml", "-Dstyle.color=never", "-Dclient.version="+p.client,
		"dependency:build-classpath", "-Dmdep.outputFile="+jars, "-Dmdep.pathSeparator="+string(filepath.ListSeparator))
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(jars)
	if err != nil {
		return "", err
	}
	err = run(ctx, "javac", slices.Concat([]string{
		"--release", strconv.Itoa(minJava), "-nowarn", "-proc:none", "-cp", string(b), "-d", filepath.Join(work, "classes"),
	}, javaSources())...)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return "", err
	}
	if err := os.Rename(work, p.dir); err != nil {
		if path, keptErr := p.kept(); keptErr == nil {
			return path, nil // the other run was faster
		}
		return "", err
	}
	return p.kept()
}

// run runs a program to its end and returns what it printed if it fails.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// javaEnv is the environment without what the kit would take for settings of its client.
func javaEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "CATALOG_") || strings.HasPrefix(variable, "JAVA_TOOL_OPTIONS=")
	})
}
