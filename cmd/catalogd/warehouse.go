package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/catalogd/catalogd/api/managerest"
)

// remote is a group of commands that speak to a running catalogd.
func remote(f *mvFlags, use, short string, commands ...*cobra.Command) *cobra.Command {
	f.uri = "http://127.0.0.1:8181"
	cmd := &cobra.Command{
		Use: use, Short: short,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnv(cmd.Flags(), os.LookupEnv) },
	}
	p := cmd.PersistentFlags()
	p.StringVar(&f.uri, "uri", f.uri, "address of a running catalogd")
	p.BoolVar(&f.json, "json", false, "print JSON for programs")
	cmd.AddCommand(commands...)
	return cmd
}

func warehouseCommand() *cobra.Command {
	f := &mvFlags{}
	return remote(f, "warehouse", "List, create and change warehouses",
		listWarehouses(f), getWarehouse(f), createWarehouse(f), setWarehouse(f), deleteWarehouse(f))
}

func listWarehouses(f *mvFlags) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all warehouses", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := f.client().Warehouses(cmd.Context())
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), managerest.WarehouseList{Warehouses: all}, func(w io.Writer) { printWarehouses(w, all...) })
		},
	}
}

func getWarehouse(f *mvFlags) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a warehouse", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := f.client().Warehouse(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), out, func(w io.Writer) { printWarehouses(w, out) })
		},
	}
}

// warehouseSettings are the flags that create and set share.
type warehouseSettings struct {
	location   string
	isDefault  bool
	softDelete time.Duration
	protected  bool
}

func (s *warehouseSettings) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.location, "location", "", "where its tables live, for example file:///srv/second")
	f.BoolVar(&s.isDefault, "default", false, "make it the warehouse of clients that name none")
	f.DurationVar(&s.softDelete, "soft-delete-retention", 0, "how long a dropped table or view can come back, for example 168h; 0 means not at all")
	f.BoolVar(&s.protected, "protected", false, "keep it from being deleted")
}

func createWarehouse(f *mvFlags) *cobra.Command {
	var s warehouseSettings
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a warehouse", Args: cobra.ExactArgs(1),
		Example: `  catalogd warehouse create second --location file:///srv/second --soft-delete-retention 168h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ms := s.softDelete.Milliseconds()
			body := managerest.NewWarehouse{Name: args[0], Default: &s.isDefault, Protected: &s.protected, SoftDeleteRetentionMs: &ms}
			optional(&body.Location, s.location)
			out, err := f.client().CreateWarehouse(cmd.Context(), body)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), out, func(w io.Writer) { fmt.Fprintf(w, "created warehouse %s at %s\n", out.Name, out.Location) })
		},
	}
	s.flags(cmd)
	return cmd
}

func setWarehouse(f *mvFlags) *cobra.Command {
	var s warehouseSettings
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change settings of a warehouse; those that are not given stay", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var body managerest.WarehouseUpdate
			given, flags := false, cmd.Flags()
			for name, take := range map[string]func(){
				"location":              func() { body.Location = &s.location },
				"default":               func() { body.Default = &s.isDefault },
				"protected":             func() { body.Protected = &s.protected },
				"soft-delete-retention": func() { ms := s.softDelete.Milliseconds(); body.SoftDeleteRetentionMs = &ms },
			} {
				if flags.Changed(name) {
					given = true
					take()
				}
			}
			if !given {
				return errors.New("nothing to change: give --location, --default, --soft-delete-retention or --protected")
			}
			out, err := f.client().UpdateWarehouse(cmd.Context(), args[0], body)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), out, func(w io.Writer) { printWarehouses(w, out) })
		},
	}
	s.flags(cmd)
	return cmd
}

func deleteWarehouse(f *mvFlags) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Delete an empty warehouse", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.client().DeleteWarehouse(cmd.Context(), args[0]); err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), map[string]string{"deleted": args[0]}, func(w io.Writer) { fmt.Fprintf(w, "deleted warehouse %s\n", args[0]) })
		},
	}
}

func printWarehouses(w io.Writer, all ...managerest.Warehouse) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WAREHOUSE\tLOCATION\tDEFAULT\tSOFT DELETE\tPROTECTED")
	for _, wh := range all {
		keep := "off"
		if wh.SoftDeleteRetentionMs > 0 {
			keep = (time.Duration(wh.SoftDeleteRetentionMs) * time.Millisecond).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", wh.Name, wh.Location, yesNo(wh.Default), keep, yesNo(wh.Protected))
	}
	_ = t.Flush() // as in printViews
}
