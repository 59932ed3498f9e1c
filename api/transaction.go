package api

import (
	"context"
	"fmt"

	"github.com/catalogd/catalogd/api/rest"
	"github.com/catalogd/catalogd/catalog"
)

// CommitTransaction handles POST /v1/{prefix}/transactions/commit.
func (s *server) CommitTransaction(ctx context.Context, req rest.CommitTransactionRequestObject) (rest.CommitTransactionResponseObject, error) {
	if req.Body.TableChanges == nil {
		return nil, invalid("Missing member table-changes: it may be empty, but must be there")
	}
	commits := make([]catalog.TableCommit, 0, len(req.Body.TableChanges))
	for i, change := range req.Body.TableChanges {
		c, err := tableCommit(change, fmt.Sprintf("table-changes[%d]", i))
		if err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
	if err := s.catalog.CommitTransaction(ctx, req.Prefix, commits); err != nil {
		return nil, err
	}
	return rest.CommitTransaction204Response{}, nil
}

func tableCommit(change rest.TableCommit, member string) (catalog.TableCommit, error) {
	if change.Identifier == nil {
		return catalog.TableCommit{}, invalid("Missing member %s.identifier", member)
	}
	id, err := identIn(change.Identifier.Namespace, change.Identifier.Name, member+".identifier")
	if err != nil {
		return catalog.TableCommit{}, err
	}
	if change.Requirements == nil {
		return catalog.TableCommit{}, invalid("Missing member %s.requirements: it may be empty, but must be there", member)
	}
	req, err := commitRequest(id, nil, change.Requirements, change.Updates)
	if err != nil {
		return catalog.TableCommit{}, err
	}
	return catalog.TableCommit{Ident: id, CommitRequest: req}, nil
}
