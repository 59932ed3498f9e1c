package duckdb

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var schemeRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// localPath turns a location into a path: plain, file:/x and file:///x are accepted.
// Nothing is unescaped: most Iceberg writers do not escape local locations.
func localPath(location string) (string, error) {
	path := location
	if rest, ok := strings.CutPrefix(location, "file:"); ok {
		path = rest
		if after, ok := strings.CutPrefix(rest, "//"); ok {
			path = strings.TrimPrefix(after, "localhost")
		}
	} else if schemeRE.MatchString(location) && !filepath.IsAbs(location) {
		return "", fmt.Errorf("location %s is not a local file: this engine reads file locations only", location)
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("location %s is not an absolute path", location)
	}
	return filepath.Clean(path), nil
}

// localFile is localPath for a file to read. iceberg-go escapes the locations that it
// records, but not the files that it writes: where the literal path is missing, the
// unescaped one is taken if it is there.
func localFile(location string) (string, error) {
	path, err := localPath(location)
	if err != nil || !strings.Contains(path, "%") {
		return path, err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, nil // whoever opens it meets the error
	}
	other, err := url.PathUnescape(path)
	if err != nil || strings.ContainsRune(other, 0) || slices.Contains(strings.Split(other, "/"), "..") {
		return path, nil //nolint:nilerr // it is no escaped path, so it stays what it says
	}
	if _, err := os.Stat(other); err != nil {
		return path, nil //nolint:nilerr // the literal name is the one to report
	}
	return other, nil
}

// joinLocation appends a relative path to a location, in the location's own spelling.
func joinLocation(location, rel string) string {
	return strings.TrimRight(location, "/") + "/" + filepath.ToSlash(rel)
}
