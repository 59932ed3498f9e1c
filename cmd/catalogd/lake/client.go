// Package lake is an ordinary Iceberg client: it writes and reads tables through a
// catalog's URI with iceberg-go, and answers SQL over rows read that way with a plain
// DuckDB. It knows nothing of how catalogd works inside, which makes it the independent
// path that the demo and the tests prove materialized views with.
package lake

import (
	"context"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
)

// Client speaks to a catalog.
type Client struct {
	rest *rest.Catalog
}

// Open connects to the catalog at uri.
func Open(ctx context.Context, uri, warehouse string) (*Client, error) {
	c, err := rest.NewCatalog(ctx, "lake", uri, rest.WithWarehouseLocation(warehouse))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", uri, err)
	}
	return &Client{rest: c}, nil
}

// CreateNamespace creates a namespace.
func (c *Client) CreateNamespace(ctx context.Context, namespace string) error {
	return c.rest.CreateNamespace(ctx, identifier(namespace), nil)
}

// CreateTable creates a table, partitioned by spec unless it is nil.
func (c *Client) CreateTable(ctx context.Context, name string, schema *iceberg.Schema, spec *iceberg.PartitionSpec, props iceberg.Properties) (*table.Table, error) {
	opts := []icecat.CreateTableOpt{icecat.WithProperties(props)}
	if spec != nil {
		opts = append(opts, icecat.WithPartitionSpec(spec))
	}
	return c.rest.CreateTable(ctx, identifier(name), schema, opts...)
}

// Load returns a table as it is now.
func (c *Client) Load(ctx context.Context, name string) (*table.Table, error) {
	return c.rest.LoadTable(ctx, identifier(name))
}

// Drop drops a table.
func (c *Client) Drop(ctx context.Context, name string) error {
	return c.rest.DropTable(ctx, identifier(name))
}

// Rows reads all rows of a table at its current snapshot. The caller releases them.
func (c *Client) Rows(ctx context.Context, name string) (arrow.Table, error) {
	t, err := c.Load(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := t.Scan().ToArrowTable(ctx)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return rows, nil
}

func identifier(dotted string) table.Identifier { return strings.Split(dotted, ".") }
