package demo

import (
	"strings"
	"time"
)

// source is the table that the replay writes.
const source = namespace + ".flights"

const namespace = "demo"

// view is a materialized view of the demo.
type view struct {
	name string
	sql  string
	unit unit // of its buckets
	// overBase is the same query with the materialized views that it reads replaced by
	// theirs, so that a proof starts from the source alone; empty if it reads none.
	overBase string
}

// unit is what the views truncate times to.
type unit int

const (
	hours unit = iota
	days
	months
)

// bucket numbers the bucket that a flight falls in.
func (u unit) bucket(f flight) int64 {
	at := time.UnixMicro(f.departure).UTC()
	switch u {
	case hours:
		return at.Unix() / int64(time.Hour/time.Second)
	case days:
		return f.day().Unix()
	default:
		return int64(at.Year())*12 + int64(at.Month())
	}
}

func (v view) dotted() string { return namespace + "." + v.name }

// storage is the table that holds the rows.
func (v view) storage() string { return v.dotted() + "__storage" }

// proof is the query over source alone.
func (v view) proof() string {
	if v.overBase != "" {
		return v.overBase
	}
	return v.sql
}

const dailyDelays = `SELECT date_trunc('day', scheduled_departure) AS day, carrier,
       count(*) AS flights,
       count(*) FILTER (WHERE departure_delay_minutes IS NULL) AS cancelled,
       CAST(sum(departure_delay_minutes) AS BIGINT) AS delay_minutes,
       max(departure_delay_minutes) AS worst_delay_minutes
  FROM demo.flights
 GROUP BY ALL`

const hourlyDepartures = `SELECT date_trunc('hour', scheduled_departure) AS hour, origin AS airport,
       count(*) AS scheduled, count(departure_delay_minutes) AS departed
  FROM demo.flights
 GROUP BY ALL`

const dailyRoutes = `SELECT date_trunc('day', scheduled_departure) AS day, origin, dest,
       count(*) AS flights, count(departure_delay_minutes) AS departed,
       CAST(sum(distance_miles) AS BIGINT) AS miles,
       CAST(sum(arrival_delay_minutes) AS BIGINT) AS arrival_delay_minutes
  FROM demo.flights
 GROUP BY ALL`

const monthlyRoutes = `SELECT date_trunc('month', day) AS month, origin, dest,
       CAST(sum(flights) AS BIGINT) AS flights, CAST(sum(departed) AS BIGINT) AS departed,
       CAST(sum(miles) AS BIGINT) AS miles,
       CAST(sum(arrival_delay_minutes) AS BIGINT) AS arrival_delay_minutes
  FROM demo.daily_routes
 GROUP BY ALL`

// views are in the order in which they can be created.
func views() []view {
	return []view{
		{name: "daily_delays", sql: dailyDelays, unit: days},
		{name: "hourly_departures", sql: hourlyDepartures, unit: hours},
		{name: "daily_routes", sql: dailyRoutes, unit: days},
		{
			name: "monthly_routes", sql: monthlyRoutes, unit: months,
			overBase: strings.ReplaceAll(monthlyRoutes, "demo.daily_routes", "(\n"+dailyRoutes+"\n)"),
		},
	}
}
