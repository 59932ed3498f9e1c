package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/catalogd/catalogd/api/managerest"
	"github.com/catalogd/catalogd/cmd/catalogd/client"
)

func tableCommand() *cobra.Command {
	f := &mvFlags{}
	cmd := remote(f, "table", "Bring back dropped tables and views, and protect those that must stay",
		listDropped(f), undropTable(f), expireDropped(f), protectTable(f, true), protectTable(f, false))
	f.warehouseFlag(cmd)
	return cmd
}

func namespaceCommand() *cobra.Command {
	f := &mvFlags{}
	cmd := remote(f, "namespace", "Protect namespaces from being dropped", protectNamespace(f, true), protectNamespace(f, false))
	f.warehouseFlag(cmd)
	return cmd
}

func (f *mvFlags) warehouseFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.warehouse, "warehouse", "", "warehouse; empty means the server's default one")
}

func listDropped(f *mvFlags) *cobra.Command {
	return &cobra.Command{
		Use: "dropped [NAMESPACE]", Short: "List what was dropped and can come back, the newest first", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var namespace []string
			if len(args) > 0 {
				namespace = strings.Split(args[0], ".")
			}
			found, err := f.client().Dropped(cmd.Context(), namespace)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), managerest.DroppedList{Dropped: found}, func(w io.Writer) { printDropped(w, found) })
		},
	}
}

func printDropped(w io.Writer, found []managerest.DroppedObject) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tTYPE\tUUID\tDROPPED\tUNTIL\tFILES THEN")
	for _, d := range found {
		files := "stay"
		if d.Purge {
			files = "deleted"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", objectName(d.Identifier), d.Type, d.UUID,
			d.DroppedAt.Local().Format(time.DateTime), d.ExpiresAt.Local().Format(time.DateTime), files)
	}
	_ = t.Flush() // as in printViews
}

func objectName(i managerest.Identifier) string {
	return strings.Join(append(append([]string{}, i.Namespace...), i.Name), ".")
}

func undropTable(f *mvFlags) *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use: "undrop NAMESPACE.NAME|UUID", Short: "Bring back a dropped table or view", Args: cobra.ExactArgs(1),
		Long: `Bring back a dropped table or view, as it was. A materialized view comes back with its
storage table. If several objects of that name were dropped, name one by its uuid.`,
		Example: `  catalogd table undrop demo.flights
  catalogd table undrop demo.flights --as demo.old_flights`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var body managerest.UndropRequest
			if uuid.Validate(args[0]) == nil {
				body.UUID = &args[0]
			} else {
				v, err := client.ParseViewName(args[0])
				if err != nil {
					return err
				}
				body.Identifier = &managerest.Identifier{Namespace: v.Namespace, Name: v.Name}
			}
			if as != "" {
				v, err := client.ParseViewName(as)
				if err != nil {
					return err
				}
				body.RenameTo = &managerest.Identifier{Namespace: v.Namespace, Name: v.Name}
			}
			out, err := f.client().Undrop(cmd.Context(), body)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), out, func(w io.Writer) { fmt.Fprintf(w, "%s is back\n", objectName(out.Identifier)) })
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "another name for it, NAMESPACE.NAME")
	return cmd
}

func expireDropped(f *mvFlags) *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use: "forget UUID", Short: "Give up a dropped table or view before its time is over", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.client().Expire(cmd.Context(), args[0], purge); err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), map[string]any{"forgotten": args[0], "purge": purge}, func(w io.Writer) { fmt.Fprintf(w, "forgot %s\n", args[0]) })
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "delete its files, too")
	return cmd
}

func protectTable(f *mvFlags, on bool) *cobra.Command {
	verb, short := protectionWords(on, "a table or view")
	return &cobra.Command{
		Use: verb + " NAMESPACE.NAME", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := client.ParseViewName(args[0])
			if err != nil {
				return err
			}
			if err := f.client().Protect(cmd.Context(), v, on); err != nil {
				return err
			}
			return f.printProtection(cmd, v.String(), verb, on)
		},
	}
}

func protectNamespace(f *mvFlags, on bool) *cobra.Command {
	verb, short := protectionWords(on, "a namespace")
	return &cobra.Command{
		Use: verb + " NAMESPACE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.client().ProtectNamespace(cmd.Context(), strings.Split(args[0], "."), on); err != nil {
				return err
			}
			return f.printProtection(cmd, args[0], verb, on)
		},
	}
}

func protectionWords(on bool, what string) (verb, short string) {
	if on {
		return "protect", "Keep " + what + " from being dropped"
	}
	return "unprotect", "Let " + what + " be dropped again"
}

func (f *mvFlags) printProtection(cmd *cobra.Command, name, verb string, on bool) error {
	return f.print(cmd.OutOrStdout(), map[string]any{"name": name, "protected": on},
		func(w io.Writer) { fmt.Fprintf(w, "%sed %s\n", verb, name) })
}
