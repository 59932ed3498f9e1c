package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/catalogd/catalogd/api/mvrest"
	"github.com/catalogd/catalogd/cmd/catalogd/client"
)

// mvFlags are what all subcommands of mv share.
type mvFlags struct {
	uri       string
	warehouse string
	json      bool
}

func (f *mvFlags) client() *client.Client { return client.New(f.uri, f.warehouse) }

func mvCommand() *cobra.Command {
	f := &mvFlags{uri: "http://127.0.0.1:8181"}
	cmd := &cobra.Command{
		Use:   "mv",
		Short: "Create, watch and refresh materialized views",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnv(cmd.Flags(), os.LookupEnv)
		},
	}
	p := cmd.PersistentFlags()
	p.StringVar(&f.uri, "uri", f.uri, "address of a running catalogd")
	p.StringVar(&f.warehouse, "warehouse", "", "warehouse; empty means the server's default one")
	p.BoolVar(&f.json, "json", false, "print JSON for programs")
	cmd.AddCommand(createMV(f), listMV(f), showMV(f), statusMV(f), refreshMV(f), dropMV(f), suspendMV(f, true), suspendMV(f, false))
	return cmd
}

func createMV(f *mvFlags) *cobra.Command {
	var (
		body      mvrest.NewMaterializedView
		storage   mvrest.StorageOptions
		dialect   string
		staleness string
		comment   string
		namespace string
		name      string
		location  string
		props     map[string]string
		tblProps  map[string]string
		replace   bool
	)
	cmd := &cobra.Command{
		Use:   "create NAMESPACE.VIEW --sql QUERY",
		Short: "Create a materialized view",
		Example: `  catalogd mv create demo.daily --sql "SELECT date_trunc('day', scheduled_departure) AS day, carrier,
    count(*) AS flights FROM demo.flights GROUP BY ALL"
  catalogd mv create demo.daily --sql @daily.sql --max-staleness 5m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := client.ParseViewName(args[0])
			if err != nil {
				return err
			}
			body.Namespace, body.Name, body.Dialect, body.OrReplace = v.Namespace, v.Name, &dialect, &replace
			if body.SQL, err = sqlArgument(body.SQL); err != nil {
				return err
			}
			if body.MaxStalenessMs, err = stalenessArgument(staleness); err != nil {
				return err
			}
			if namespace != "" {
				body.DefaultNamespace = strings.Split(namespace, ".")
			}
			optional(&body.Comment, comment)
			optional(&storage.Name, name)
			optional(&storage.Location, location)
			body.Properties, storage.Properties = propertyMap(props), propertyMap(tblProps)
			body.Storage = &storage
			out, err := f.client().Create(cmd.Context(), body)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), out, func(w io.Writer) {
				fmt.Fprintf(w, "created %s, stored in %s, first refresh is %s\n", v, dotted(out.Definition.StorageTable), jobWord(out.Job))
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&body.SQL, "sql", "", "the query, or @FILE")
	flags.StringVar(&dialect, "dialect", "duckdb", "dialect of the query: duckdb, trino or spark")
	flags.StringVar(&staleness, "max-staleness", "0s", "how old an answer may be: 0s (always exact), 60s, 5m, or unbounded")
	flags.StringVar(&comment, "comment", "", "comment of the view")
	flags.StringVar(&namespace, "default-namespace", "", "namespace of unqualified names; default: the view's own")
	flags.BoolVar(&replace, "or-replace", false, "replace an existing view")
	flags.StringToStringVar(&props, "property", nil, "view property KEY=VALUE (repeatable)")
	flags.StringVar(&name, "storage-name", "", "name of the storage table; default: VIEW__storage")
	flags.StringVar(&location, "storage-location", "", "location of the storage table")
	flags.StringArrayVar(&storage.Partition, "partition", nil, "storage partition field, for example day(ts) or none (repeatable)")
	flags.StringArrayVar(&storage.Sort, "sort", nil, "storage sort field, for example carrier or 'day desc' (repeatable)")
	flags.StringToStringVar(&tblProps, "table-property", nil, "storage table property KEY=VALUE (repeatable)")
	return cmd
}

// sqlArgument reads the query, from a file if it begins with @.
func sqlArgument(s string) (string, error) {
	if s == "" {
		return "", errors.New("--sql is missing: give the query, or @FILE")
	}
	file, isFile := strings.CutPrefix(s, "@")
	if !isFile {
		return s, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--sql: %w", err)
	}
	return string(raw), nil
}

// stalenessArgument writes a duration as milliseconds; null is any age.
func stalenessArgument(s string) (json.RawMessage, error) {
	if s == "unbounded" {
		return json.RawMessage("null"), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return nil, fmt.Errorf("--max-staleness %q is no duration: write 0s, 500ms, 60s, 5m, 24h or unbounded", s)
	}
	return json.RawMessage(strconv.FormatInt(d.Milliseconds(), 10)), nil
}

func optional(field **string, value string) {
	if value != "" {
		*field = &value
	}
}

func propertyMap(m map[string]string) *mvrest.PropertyMap {
	if len(m) == 0 {
		return nil
	}
	out := mvrest.PropertyMap{}
	for k, v := range m {
		out[k] = &v
	}
	return &out
}

func listMV(f *mvFlags) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the materialized views and how fresh they are", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			views, err := f.client().List(cmd.Context())
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), mvrest.MaterializedViewList{MaterializedViews: views}, func(w io.Writer) {
				if len(views) == 0 {
					fmt.Fprintln(w, "no materialized views yet: create one with `catalogd mv create`")
					return
				}
				printViews(w, views)
			})
		},
	}
}

func showMV(f *mvFlags) *cobra.Command {
	return &cobra.Command{
		Use: "show NAMESPACE.VIEW", Short: "Show a materialized view: query, sources, freshness, last refresh", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := client.ParseViewName(args[0])
			if err != nil {
				return err
			}
			out, err := f.client().Freshness(cmd.Context(), v)
			if err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), out, func(w io.Writer) { printView(w, out) })
		},
	}
}

func statusMV(f *mvFlags) *cobra.Command {
	watch := false
	cmd := &cobra.Command{
		Use: "status [NAMESPACE.VIEW]", Short: "Tell how fresh one or all materialized views are", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			once := func(ctx context.Context) error { return f.status(ctx, cmd.OutOrStdout(), args) }
			if !watch {
				return once(cmd.Context())
			}
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				if err := once(cmd.Context()); err != nil {
					return err
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-tick.C:
				}
			}
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print again every second until Ctrl-C")
	return cmd
}

func (f *mvFlags) status(ctx context.Context, w io.Writer, args []string) error {
	c := f.client()
	if len(args) == 0 {
		views, err := c.List(ctx)
		if err != nil {
			return err
		}
		return f.print(w, mvrest.MaterializedViewList{MaterializedViews: views}, func(w io.Writer) { printViews(w, views) })
	}
	v, err := client.ParseViewName(args[0])
	if err != nil {
		return err
	}
	out, err := c.Freshness(ctx, v)
	if err != nil {
		return err
	}
	return f.print(w, out, func(w io.Writer) { printViews(w, []mvrest.MaterializedView{out}) })
}

func refreshMV(f *mvFlags) *cobra.Command {
	var wait, full, all, stale bool
	cmd := &cobra.Command{
		Use:   "refresh [NAMESPACE.VIEW…]",
		Short: "Ask for a refresh that starts now, of some, all or all stale views",
		Long: `Ask for a refresh that starts after this call. With --wait the command ends with the run,
and with a non-zero exit code if it failed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (all || stale) == (len(args) > 0) {
				return errors.New("name the views to refresh, or give --all or --stale")
			}
			names, err := f.chosen(cmd.Context(), args, stale)
			if err != nil {
				return err
			}
			return f.refresh(cmd, names, wait, full)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&wait, "wait", false, "wait for the end of the run")
	flags.BoolVar(&full, "full", false, "recompute everything")
	flags.BoolVar(&all, "all", false, "all materialized views of the warehouse")
	flags.BoolVar(&stale, "stale", false, "those that are not up to date")
	return cmd
}

// chosen is the views named, or all, or those that are not up to date.
func (f *mvFlags) chosen(ctx context.Context, args []string, stale bool) ([]client.ViewName, error) {
	var names []client.ViewName
	for _, a := range args {
		v, err := client.ParseViewName(a)
		if err != nil {
			return nil, err
		}
		names = append(names, v)
	}
	if len(args) > 0 {
		return names, nil
	}
	views, err := f.client().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		if !stale || !v.Recursive.UpToDate {
			names = append(names, client.ViewName{Namespace: v.View.Namespace, Name: v.View.Name})
		}
	}
	return names, nil
}

// refreshed is what refresh prints as JSON.
type refreshed struct {
	View   string                `json:"view"`
	Run    *mvrest.RefreshRun    `json:"run,omitempty"`
	Ticket *mvrest.RefreshTicket `json:"ticket,omitempty"`
	Error  string                `json:"error,omitempty"`
}

func (f *mvFlags) refresh(cmd *cobra.Command, names []client.ViewName, wait, full bool) error {
	failed := false
	out := []refreshed{}
	for _, v := range names {
		r := refreshed{View: v.String()}
		if !wait {
			ticket, err := f.client().Request(cmd.Context(), v, full)
			r.Ticket, r.Error = &ticket, errorText(err)
		} else {
			run, err := f.client().Refresh(cmd.Context(), v, full)
			r.Run, r.Error = &run, errorText(err)
			if err == nil && run.Status != "succeeded" {
				r.Error = run.Reason
				if run.Error != nil {
					r.Error += ": " + *run.Error
				}
			}
		}
		failed = failed || r.Error != ""
		out = append(out, r)
		if !f.json {
			printRefreshed(cmd.OutOrStdout(), r)
		}
	}
	if f.json {
		if err := f.print(cmd.OutOrStdout(), map[string]any{"refreshes": out}, nil); err != nil {
			return err
		}
	}
	if failed {
		return exitError{1}
	}
	return nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func dropMV(f *mvFlags) *cobra.Command {
	keep := false
	cmd := &cobra.Command{
		Use: "drop NAMESPACE.VIEW", Short: "Drop a materialized view and its storage table", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := client.ParseViewName(args[0])
			if err != nil {
				return err
			}
			if err := f.client().Act(cmd.Context(), http.MethodDelete, v, "?keepStorage="+strconv.FormatBool(keep)); err != nil {
				return err
			}
			return f.print(cmd.OutOrStdout(), map[string]string{"dropped": v.String()}, func(w io.Writer) { fmt.Fprintf(w, "dropped %s\n", v) })
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-storage", false, "leave the storage table behind as a plain table")
	return cmd
}

func suspendMV(f *mvFlags, suspend bool) *cobra.Command {
	verb, short := "resume", "Start automatic refreshes again"
	if suspend {
		verb, short = "suspend", "Stop automatic refreshes"
	}
	return &cobra.Command{
		Use: verb + " NAMESPACE.VIEW", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := client.ParseViewName(args[0])
			if err != nil {
				return err
			}
			if err := f.client().Act(cmd.Context(), http.MethodPost, v, "/"+verb); err != nil {
				return err
			}
			done := strings.TrimSuffix(verb, "e") + "ed"
			return f.print(cmd.OutOrStdout(), map[string]string{done: v.String()}, func(w io.Writer) { fmt.Fprintf(w, "%s %s\n", done, v) })
		},
	}
}

// print writes JSON for programs, or what text writes for people.
func (f *mvFlags) print(w io.Writer, value any, text func(io.Writer)) error {
	if !f.json {
		text(w)
		return nil
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
