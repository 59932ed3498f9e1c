package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/catalogd/catalogd/api/managerest"
)

// Warehouses lists all warehouses.
func (c *Client) Warehouses(ctx context.Context) ([]managerest.Warehouse, error) {
	var out managerest.WarehouseList
	_, err := c.call(ctx, http.MethodGet, "/catalogd/v1/warehouses", nil, &out)
	return out.Warehouses, err
}

func warehousePath(name string) string { return "/catalogd/v1/warehouses/" + url.PathEscape(name) }

// Warehouse returns one warehouse.
func (c *Client) Warehouse(ctx context.Context, name string) (managerest.Warehouse, error) {
	var out managerest.Warehouse
	_, err := c.call(ctx, http.MethodGet, warehousePath(name), nil, &out)
	return out, err
}

// CreateWarehouse makes a warehouse.
func (c *Client) CreateWarehouse(ctx context.Context, body managerest.NewWarehouse) (managerest.Warehouse, error) {
	var out managerest.Warehouse
	_, err := c.call(ctx, http.MethodPost, "/catalogd/v1/warehouses", body, &out)
	return out, err
}

// UpdateWarehouse changes settings of a warehouse.
func (c *Client) UpdateWarehouse(ctx context.Context, name string, body managerest.WarehouseUpdate) (managerest.Warehouse, error) {
	var out managerest.Warehouse
	_, err := c.call(ctx, http.MethodPost, warehousePath(name), body, &out)
	return out, err
}

// DeleteWarehouse deletes an empty warehouse.
func (c *Client) DeleteWarehouse(ctx context.Context, name string) error {
	_, err := c.call(ctx, http.MethodDelete, warehousePath(name), nil, nil)
	return err
}

// own is a path of catalogd's own below the warehouse.
func (c *Client) own(ctx context.Context, rest string) (string, error) {
	prefix, err := c.prefix(ctx)
	return "/catalogd/v1/" + prefix + rest, err
}

func namespacePath(levels []string) string {
	return "/namespaces/" + url.PathEscape(strings.Join(levels, "\x1f"))
}

// Dropped lists what can come back, page by page, the newest first. No namespace means
// all.
func (c *Client) Dropped(ctx context.Context, namespace []string) ([]managerest.DroppedObject, error) {
	out := []managerest.DroppedObject{}
	token := ""
	for {
		path, err := c.own(ctx, "/dropped?namespace="+url.QueryEscape(strings.Join(namespace, "\x1f"))+"&pageToken="+url.QueryEscape(token))
		if err != nil {
			return nil, err
		}
		var page managerest.DroppedList
		if _, err := c.call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return nil, err
		}
		out = append(out, page.Dropped...)
		if page.NextPageToken == nil || *page.NextPageToken == "" {
			return out, nil
		}
		token = *page.NextPageToken
	}
}

// Undrop brings back a dropped object.
func (c *Client) Undrop(ctx context.Context, body managerest.UndropRequest) (managerest.Undropped, error) {
	var out managerest.Undropped
	path, err := c.own(ctx, "/undrop")
	if err != nil {
		return out, err
	}
	_, err = c.call(ctx, http.MethodPost, path, body, &out)
	return out, err
}

// Expire gives up a dropped object, with its files if purge is set.
func (c *Client) Expire(ctx context.Context, uuid string, purge bool) error {
	path, err := c.own(ctx, "/dropped/"+url.PathEscape(uuid)+"?purge="+strconv.FormatBool(purge))
	if err != nil {
		return err
	}
	_, err = c.call(ctx, http.MethodDelete, path, nil, nil)
	return err
}

// Protect protects a table, or a view of that name, or lifts that.
func (c *Client) Protect(ctx context.Context, v ViewName, on bool) error {
	err := c.protect(ctx, namespacePath(v.Namespace)+"/tables/"+url.PathEscape(v.Name), on)
	if r, ok := errors.AsType[*refusal](err); !ok || r.kind != "NoSuchTableException" {
		return err
	}
	viewErr := c.protect(ctx, namespacePath(v.Namespace)+"/views/"+url.PathEscape(v.Name), on)
	if r, ok := errors.AsType[*refusal](viewErr); ok && r.kind == "NoSuchViewException" {
		return &refusal{status: r.status, kind: r.kind, message: "Table or view does not exist: " + v.String()}
	}
	return viewErr
}

// ProtectNamespace protects a namespace, or lifts that.
func (c *Client) ProtectNamespace(ctx context.Context, levels []string, on bool) error {
	return c.protect(ctx, namespacePath(levels), on)
}

func (c *Client) protect(ctx context.Context, object string, on bool) error {
	path, err := c.own(ctx, object+"/protection")
	if err != nil {
		return err
	}
	_, err = c.call(ctx, http.MethodPut, path, managerest.ProtectionChange{Protected: &on}, nil)
	return err
}
