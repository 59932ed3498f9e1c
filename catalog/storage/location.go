package storage

import (
	"net/url"
	"path"
	"strings"

	"github.com/catalogd/catalogd/catalog"
)

// place is a parsed location: a local path, or a URI of an object store.
type place struct {
	local string // absolute, cleaned; empty for an object store
	uri   string // object stores: the location as given
	mount string // object stores: scheme://bucket
}

// parse splits a location. It refuses what could mean another file than it says:
// relative paths, ".." segments and NUL bytes.
func parse(location string) (place, error) {
	if location == "" {
		return place{}, catalog.Errorf(catalog.KindInvalid, "location is empty")
	}
	scheme, rest, isURI := cutScheme(location)
	if strings.ContainsRune(rest, 0) || hasParentSegment(rest) {
		return place{}, catalog.Errorf(catalog.KindInvalid, "location %q must not contain %q segments or NUL bytes", location, "..")
	}
	if isURI && scheme != "file" && scheme != "local" {
		return parseObject(location, scheme, rest)
	}
	p, ok := localPath(rest, isURI)
	if !ok {
		return place{}, catalog.Errorf(catalog.KindInvalid, "location %q is not an absolute path or URI", location)
	}
	return place{local: path.Clean(p)}, nil
}

func parseObject(location, scheme, rest string) (place, error) {
	host, key, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	if !strings.HasPrefix(rest, "//") || host == "" {
		return place{}, catalog.Errorf(catalog.KindInvalid, "location %q names no bucket", location)
	}
	mount := scheme + "://" + host
	return place{uri: mount + "/" + key, mount: mount}, nil
}

// cutScheme splits "scheme:rest"; a colon after the first slash belongs to a path.
func cutScheme(location string) (scheme, rest string, ok bool) {
	head, tail, found := strings.Cut(location, ":")
	if !found || head == "" || strings.ContainsAny(head, "/\\") {
		return "", location, false
	}
	return strings.ToLower(head), tail, true
}

// localPath takes the part after "file:": "/x", "//host/x" or "///x".
func localPath(rest string, isURI bool) (string, bool) {
	if isURI && strings.HasPrefix(rest, "//") {
		host, p, ok := strings.Cut(rest[2:], "/")
		if !ok || (host != "" && !strings.EqualFold(host, "localhost")) {
			return "", false
		}
		return "/" + p, true
	}
	return rest, strings.HasPrefix(rest, "/")
}

func hasParentSegment(p string) bool {
	for segment := range strings.SplitSeq(p, "/") {
		if segment == ".." {
			return true
		}
	}
	return false
}

// decoded is the name that iceberg-go's own local IO gives to p; ok if it differs.
func decoded(p string) (string, bool) {
	if !strings.Contains(p, "%") {
		return "", false
	}
	d, err := url.PathUnescape(p)
	if err != nil || d == p || strings.ContainsRune(d, 0) || hasParentSegment(d) {
		return "", false
	}
	return d, true
}

// within reports whether p lies inside root. Both are cleaned; root "/" holds everything.
func (p place) within(root place) bool {
	if p.local != "" {
		return root.local == "/" || (root.local != "" && strings.HasPrefix(p.local, root.local+"/"))
	}
	return root.uri != "" && strings.HasPrefix(p.uri, strings.TrimRight(root.uri, "/")+"/")
}
