package duckdb

import (
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"

	driverduckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/twmb/murmur3"
)

// function is a scalar function of the engine: Iceberg's bucket hash, which DuckDB lacks.
type function struct {
	config driverduckdb.ScalarFuncConfig
	run    driverduckdb.RowExecutorFn
}

func (f function) Config() driverduckdb.ScalarFuncConfig { return f.config }

func (f function) Executor() driverduckdb.ScalarFuncExecutor {
	return driverduckdb.ScalarFuncExecutor{RowExecutor: f.run}
}

// registerTransforms adds what the partition fields of a run need. It is called before a
// query is bound; [guard] keeps queries from calling these functions.
func registerTransforms(conn *sql.Conn, fields []partitionField) error {
	needed := false
	for _, p := range fields {
		needed = needed || p.transform == "bucket" || p.transform == "truncate" && p.typ.kind == kDecimal
	}
	if !needed {
		return nil
	}
	long, varchar := driverduckdb.TYPE_BIGINT, driverduckdb.TYPE_VARCHAR
	hash := func(digest func(any) ([]byte, error)) driverduckdb.RowExecutorFn {
		return func(v []driver.Value) (any, error) {
			b, err := digest(v[0])
			return int64(murmur3.Sum32(b)), err
		}
	}
	defs := []struct {
		name   string
		in     []driverduckdb.Type
		result driverduckdb.Type
		run    driverduckdb.RowExecutorFn
	}{
		{"catalogd_hash_long", []driverduckdb.Type{long}, long, hash(longBytes)},
		{"catalogd_hash_bytes", []driverduckdb.Type{driverduckdb.TYPE_BLOB}, long, hash(rawBytes)},
		{"catalogd_hash_decimal", []driverduckdb.Type{varchar}, long, hash(decimalBytes)},
		{"catalogd_decimal_truncate", []driverduckdb.Type{varchar, long}, varchar, truncateDecimal},
	}
	for _, d := range defs {
		f := function{run: d.run}
		for _, t := range d.in {
			info, err := driverduckdb.NewTypeInfo(t)
			if err != nil {
				return err
			}
			f.config.InputTypeInfos = append(f.config.InputTypeInfos, info)
		}
		var err error
		if f.config.ResultTypeInfo, err = driverduckdb.NewTypeInfo(d.result); err != nil {
			return err
		}
		if err := driverduckdb.RegisterScalarUDF(conn, d.name, f); err != nil {
			return fmt.Errorf("register %s: %w", d.name, err)
		}
	}
	return nil
}

func longBytes(v any) ([]byte, error) {
	n, ok := v.(int64)
	if !ok {
		return nil, fmt.Errorf("hash of %T", v)
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(n)), nil
}

func rawBytes(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("hash of %T", v)
	}
	return b, nil
}

// decimalBytes is the shortest big-endian two's complement of the unscaled value.
func decimalBytes(v any) ([]byte, error) {
	n, _, err := unscaled(v)
	if err != nil {
		return nil, err
	}
	size := n.BitLen()/8 + 1
	if n.Sign() < 0 {
		size = new(big.Int).Not(n).BitLen()/8 + 1
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(size)*8))
	}
	return n.FillBytes(make([]byte, size)), nil
}

// unscaled takes a decimal's text apart into its digits and its scale.
func unscaled(v any) (*big.Int, int, error) {
	s, ok := v.(string)
	if !ok {
		return nil, 0, fmt.Errorf("decimal from %T", v)
	}
	whole, frac, _ := strings.Cut(s, ".")
	n, ok := new(big.Int).SetString(whole+frac, 10)
	if !ok {
		return nil, 0, fmt.Errorf("%q is not a decimal", s)
	}
	return n, len(frac), nil
}

// truncateDecimal rounds the unscaled value down to a multiple of the width.
func truncateDecimal(v []driver.Value) (any, error) {
	n, scale, err := unscaled(v[0])
	if err != nil {
		return nil, err
	}
	width, ok := v[1].(int64)
	if !ok {
		return nil, fmt.Errorf("width of %T", v[1])
	}
	rem := new(big.Int).Mod(n, big.NewInt(width)) // Mod is never negative
	return formatUnscaled(new(big.Int).Sub(n, rem), scale), nil
}

func formatUnscaled(n *big.Int, scale int) string {
	digits := new(big.Int).Abs(n).String()
	if scale > 0 {
		if pad := scale + 1 - len(digits); pad > 0 {
			digits = strings.Repeat("0", pad) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if n.Sign() < 0 {
		return "-" + digits
	}
	return digits
}
