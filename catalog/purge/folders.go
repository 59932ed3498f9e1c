package purge

import "strings"

// joined replaces folders by the ones above them, the deepest first, until there are few
// enough. Each of folders lies in one of the result. More roots than may be kept become
// the empty folder, which is everywhere.
func joined(folders map[string]bool) map[string]bool {
	folders = uncovered(folders)
	for len(folders) > maxFolders/2 {
		deepest := 0
		for f := range folders {
			deepest = max(deepest, depth(f))
		}
		if deepest == 0 {
			break // a root is in nothing
		}
		above := make(map[string]bool, len(folders))
		for f := range folders {
			if depth(f) == deepest {
				f = parent(f)
			}
			above[f] = true
		}
		folders = uncovered(above)
	}
	if len(folders) > maxFolders {
		return map[string]bool{"": true}
	}
	return folders
}

// uncovered leaves out the folders that lie in others.
func uncovered(folders map[string]bool) map[string]bool {
	if folders[""] {
		return map[string]bool{"": true}
	}
	left := make(map[string]bool, len(folders))
	for f := range folders {
		inside := false
		for up := f; depth(up) > 0 && !inside; {
			up = parent(up)
			inside = folders[up]
		}
		if !inside {
			left[f] = true
		}
	}
	return left
}

// root is the outermost folder around a folder: "/" or "scheme://authority/". Both end in
// a slash.
func root(folder string) string {
	start := 0
	if i := strings.Index(folder, "://"); i >= 0 {
		start = i + len("://")
	}
	end := strings.IndexByte(folder[start:], '/')
	return folder[:start+end+1]
}

// depth is how many levels a folder lies below its root.
func depth(folder string) int { return strings.Count(folder[len(root(folder)):], "/") }

// parent is the folder around one that is no root.
func parent(folder string) string {
	return folder[:strings.LastIndexByte(strings.TrimSuffix(folder, "/"), '/')+1]
}
