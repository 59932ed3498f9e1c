package duckdb

import (
	"encoding/json"
	"strings"

	"github.com/catalogd/catalogd/catalog"
)

// duckError is an error of DuckDB under errors_as_json.
type duckError struct {
	Type     string `json:"exception_type"`
	Message  string `json:"exception_message"`
	Position string `json:"position"`
}

// parseDuckError takes DuckDB's structured error out of what the driver reports, which
// may have a prefix.
func parseDuckError(err error) (duckError, bool) {
	s := err.Error()
	i := strings.Index(s, `{"exception_type"`)
	if i < 0 {
		return duckError{Message: s}, false
	}
	var d duckError
	if json.NewDecoder(strings.NewReader(s[i:])).Decode(&d) != nil {
		return duckError{Message: s}, false
	}
	return d, true
}

// queryError is a failure to parse or bind text: the caller's mistake, told with its
// position.
func queryError(text string, err error) error {
	d, ok := parseDuckError(err)
	if k := kindOf(d.Type); !ok || k == catalog.KindUnavailable || k == catalog.KindInternal {
		return catalog.Errorf(catalog.KindInternal, "DuckDB failed on the query: %s", tidy(d.Message)).Because(err)
	}
	return catalog.Errorf(catalog.KindInvalid, "%s%s", position(text, d.Position), tidy(d.Message)).Because(err)
}

// runError classifies a failure while a task runs.
func runError(what string, err error) error {
	d, _ := parseDuckError(err)
	return catalog.Errorf(kindOf(d.Type), "%s: %s", what, tidy(d.Message)).Because(err)
}

// kindOf says whether running again may help: not after an error that the data or the
// query causes.
func kindOf(exception string) catalog.Kind {
	switch exception {
	case "Out of Memory", "IO", "Interrupt", "INTERRUPT", "HTTP", "Connection", "Network":
		return catalog.KindUnavailable
	case "", "INTERNAL", "Internal", "FATAL", "Fatal":
		return catalog.KindInternal
	}
	return catalog.KindUnprocessable
}

// tidy puts a message of DuckDB on one line, without the excerpt of the query that the
// position already stands for, and without hints that name DuckDB's own objects.
func tidy(msg string) string {
	if i := strings.Index(msg, "\n\nLINE "); i >= 0 {
		msg = msg[:i]
	}
	var out []string
	for line := range strings.SplitSeq(msg, "\n") {
		line = strings.TrimSpace(line)
		if i := strings.Index(line, `Use "SET `); i >= 0 { // settings are not the user's to change
			line = strings.TrimSpace(line[:i])
		}
		if line == "" || strings.HasPrefix(line, `Did you mean "pg_`) || strings.HasPrefix(line, `Did you mean "duckdb_`) {
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, " ")
}
