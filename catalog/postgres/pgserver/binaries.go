package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MinMajor is the oldest PostgreSQL that catalogd runs on.
const MinMajor = 15

// ErrNoBinaries says that no usable PostgreSQL server is installed, and how to get one.
var ErrNoBinaries = errors.New("no PostgreSQL server of version " + strconv.Itoa(MinMajor) + " or newer is installed (looked in PATH, pg_config " +
	"and the usual folders); install one: `apt-get install postgresql` (Debian, Ubuntu), " +
	"`dnf install postgresql-server` (Fedora), `brew install postgresql@17` (macOS)")

// Binaries is one installation of the PostgreSQL server.
type Binaries struct {
	Dir     string // the folder that holds initdb, postgres and pg_ctl
	Version string // as the server prints it, for example 15.18
	Major   int
}

func (b Binaries) path(program string) string { return filepath.Join(b.Dir, program) }

// Find returns the first installed server that is new enough: from PATH, then from
// pg_config, then from the folders that packages of Debian, Fedora, Homebrew and
// Postgres.app use, newest first. It fails with [ErrNoBinaries].
func Find(ctx context.Context) (Binaries, error) {
	acct, err := accountFor("")
	if err != nil {
		return Binaries{}, err
	}
	return find(ctx, candidateDirs(ctx), acct, 0)
}

// find returns the first of dirs that holds a usable server; a major other than 0 accepts
// that version only.
func find(ctx context.Context, dirs []string, acct *account, major int) (Binaries, error) {
	var notes []error
	for _, dir := range dirs {
		b, err := inspect(ctx, dir, acct)
		if err != nil {
			notes = append(notes, err)
			continue
		}
		if major == 0 || b.Major == major {
			return b, nil
		}
	}
	// What was found and rejected tells more than "nothing found".
	return Binaries{}, errors.Join(append([]error{ErrNoBinaries}, notes...)...)
}

// installed is where packages put the server, as patterns.
var installed = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/usr/lib64/pgsql/postgresql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin",
	"/usr/libexec/postgresql*",
}

// candidateDirs lists every folder that may hold a server, best first, links resolved:
// /usr/bin/postgres may be a link into the folder that also holds initdb.
func candidateDirs(ctx context.Context) []string {
	var dirs []string
	add := func(dir string) {
		if target, err := filepath.EvalSymlinks(dir); err == nil && !slices.Contains(dirs, target) {
			dirs = append(dirs, target)
		}
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			add(filepath.Dir(target))
		}
		add(filepath.Dir(path))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		add(strings.TrimSpace(string(out)))
	}
	for _, pattern := range installed {
		matches, _ := filepath.Glob(pattern) // the patterns are constants and well-formed
		slices.SortFunc(matches, func(a, b string) int { return versionIn(b) - versionIn(a) })
		for _, m := range matches {
			add(m)
		}
	}
	return dirs
}

var digits = regexp.MustCompile(`\d+`)

// versionIn reads the major version out of a folder's name, 0 if it has none.
func versionIn(dir string) int {
	n, _ := strconv.Atoi(digits.FindString(dir))
	return n
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^\s]*)`)

// inspect checks that dir holds a complete server that is new enough and that acct can
// execute.
func inspect(ctx context.Context, dir string, acct *account) (Binaries, error) {
	for _, program := range []string{"postgres", "initdb", "pg_ctl"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return Binaries{}, fmt.Errorf("%s has no %s", dir, program)
		}
	}
	if !acct.reaches(filepath.Join(dir, "postgres")) {
		return Binaries{}, fmt.Errorf("%s cannot be used by account %s, as which the server must run", dir, acct.name)
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("%s/postgres --version: %w", dir, err)
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return Binaries{}, fmt.Errorf("%s/postgres --version printed %q", dir, out)
	}
	major, _ := strconv.Atoi(string(m[2])) // the pattern admits digits only
	if major < MinMajor {
		return Binaries{}, fmt.Errorf("%s is PostgreSQL %s, older than %d", dir, m[1], MinMajor)
	}
	return Binaries{Dir: dir, Version: string(m[1]), Major: major}, nil
}
