package duckdb

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

var schemeRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// localPath turns a location into a path: plain, file:/x and file:///x are accepted.
// Nothing is unescaped, as no Iceberg writer escapes local locations.
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

// joinLocation appends a relative path to a location, in the location's own spelling.
func joinLocation(location, rel string) string {
	return strings.TrimRight(location, "/") + "/" + filepath.ToSlash(rel)
}
