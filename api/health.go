package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// registerHealth adds what operators and orchestrators ask. /livez answers as long as the
// process does: a database that is away must not get the process restarted.
func registerHealth(e *echo.Echo, ready func(context.Context) []Problem, metrics prometheus.Gatherer) {
	probes := []string{http.MethodGet, http.MethodHead}
	e.Match(probes, "/livez", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"status": "alive"})
	})
	e.Match(probes, "/readyz", func(c echo.Context) error {
		problems := []Problem{}
		if ready != nil {
			problems = append(problems, ready(c.Request().Context())...)
		}
		if len(problems) > 0 {
			return c.JSON(http.StatusServiceUnavailable, readiness{"not ready", problems})
		}
		return c.JSON(http.StatusOK, readiness{"ready", problems})
	})
	e.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})))
}

type readiness struct {
	Status   string    `json:"status"`
	Problems []Problem `json:"problems"`
}
