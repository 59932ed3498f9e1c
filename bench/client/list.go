package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Names is what an answer to a listing says, next empty on the last page.
func (r Reply) Names() (names []string, next string, err error) {
	if err := r.ok(); err != nil {
		return nil, "", err
	}
	text, err := r.Text()
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Next        *string `json:"next-page-token"`
		Identifiers []struct {
			Name string `json:"name"`
		} `json:"identifiers"`
	}
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, "", err
	}
	for _, id := range page.Identifiers {
		names = append(names, id.Name)
	}
	if page.Next != nil {
		next = *page.Next
	}
	return names, next, nil
}

// CheckFirstPage checks the first page of a listing: the first names in order, and a token
// if and only if there are more.
func (r Reply) CheckFirstPage(want []string, more bool) error {
	names, next, err := r.Names()
	switch {
	case err != nil:
		return err
	case !slices.Equal(names, want):
		return fmt.Errorf("%d names from %s, want %d from %s", len(names), strings.Join(names[:min(1, len(names))], ""), len(want), want[0])
	case more && next == "":
		return errors.New("there is no token for the next page")
	case !more && next != "":
		return errors.New("there is a token for a page that does not exist")
	}
	return nil
}
