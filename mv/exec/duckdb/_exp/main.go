package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"

	_ "github.com/duckdb/duckdb-go/v2"
)

func main() {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		panic(err)
	}
	b, _ := io.ReadAll(os.Stdin)
	c, _ := db.Conn(context.Background())
	for _, q := range strings.Split(string(b), ";;\n") {
		q = strings.TrimSpace(q)
		if q == "" {
			continue
		}
		fmt.Println(">>", q)
		rows, err := c.QueryContext(context.Background(), q)
		if err != nil {
			fmt.Printf("ERR %T %v\n", err, err)
			continue
		}
		cols, _ := rows.Columns()
		fmt.Println(strings.Join(cols, " | "))
		for rows.Next() {
			v := make([]any, len(cols))
			p := make([]any, len(cols))
			for i := range v {
				p[i] = &v[i]
			}
			if err := rows.Scan(p...); err != nil {
				fmt.Println("SCANERR", err)
				break
			}
			for i := range v {
				if bb, ok := v[i].([]byte); ok {
					v[i] = fmt.Sprintf("x%x", bb)
				}
				fmt.Print(v[i], " | ")
			}
			fmt.Println()
		}
		if rows.Err() != nil {
			fmt.Println("ROWERR", rows.Err())
		}
		rows.Close()
	}
}
