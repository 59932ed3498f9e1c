package catalog

import (
	"path"
	"strings"
)

// LocationKey is the form of a location in which two spellings of one place are equal:
// schemes that clients use for the same store are one, file URIs are paths, and there is
// no slash at the end. Every location inside another one's begins with the other's key
// and a slash.
func LocationKey(location string) string {
	scheme, rest, ok := strings.Cut(location, ":")
	if !ok || strings.ContainsAny(scheme, "/\\") {
		return path.Clean(location)
	}
	scheme = strings.ToLower(scheme)
	switch scheme {
	case "file", "local":
		if host, p, ok := strings.Cut(strings.TrimPrefix(rest, "//"), "/"); strings.HasPrefix(rest, "//") && ok && (host == "" || strings.EqualFold(host, "localhost")) {
			return path.Clean("/" + p)
		}
		return path.Clean(rest)
	case "s3a", "s3n":
		scheme = "s3"
	case "abfss", "wasb", "wasbs":
		scheme = "abfs"
	}
	return scheme + ":" + strings.TrimRight(rest, "/")
}

// Enclosing are the keys of the places that hold the place of a key, outermost first.
func Enclosing(key string) []string {
	var keys []string
	start := 0
	if _, rest, ok := strings.Cut(key, "://"); ok {
		start = len(key) - len(rest)
	}
	for i := start + 1; i < len(key); i++ {
		if key[i] == '/' && key[i-1] != '/' {
			keys = append(keys, key[:i])
		}
	}
	return keys
}
