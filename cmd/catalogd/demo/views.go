package demo

import "strings"

// source is the table that the replay writes.
const source = namespace + ".flights"

const namespace = "demo"

// view is a materialized view of the demo.
type view struct {
	name string
	sql  string
	// overBase is the same query with the materialized views that it reads replaced by
	// theirs, so that a proof starts from the source alone; empty if it reads none.
	overBase string
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
		{name: "daily_delays", sql: dailyDelays},
		{name: "hourly_departures", sql: hourlyDepartures},
		{name: "daily_routes", sql: dailyRoutes},
		{
			name: "monthly_routes", sql: monthlyRoutes,
			overBase: strings.ReplaceAll(monthlyRoutes, "demo.daily_routes", "(\n"+dailyRoutes+"\n)"),
		},
	}
}
