package catalog

import (
	"strings"

	"github.com/catalogd/catalogd/catalog/metadata"
)

// propDeleteMetadata asks that metadata files which fall off the log be deleted.
const propDeleteMetadata = "write.metadata.delete-after-commit.enabled"

// obsolete are the metadata files that a commit took off the log of a table and that its
// properties ask to be deleted. A log is what a client registered once, so only metadata
// files below the table's own location, or where it writes its metadata to, are believed
// to be its own.
func obsolete(t *metadata.Table) []string {
	value, _ := t.Property(propDeleteMetadata)
	if !strings.EqualFold(strings.TrimSpace(value), "true") {
		return nil
	}
	folders := []string{LocationKey(t.Location()) + "/"}
	if p, ok := t.Property(propMetadataPath); ok && p != "" {
		folders = append(folders, LocationKey(p)+"/")
	}
	var files []string
	for _, file := range t.TrimmedLog() {
		if !strings.HasSuffix(file, ".metadata.json") && !strings.HasSuffix(file, ".metadata.json.gz") {
			continue
		}
		key := LocationKey(file)
		for _, folder := range folders {
			if strings.HasPrefix(key, folder) {
				files = append(files, file)
				break
			}
		}
	}
	return files
}
