package adminapi

import "net/http"

// Route is one method of one path of the admin API.
type Route struct {
	Method  string
	Pattern string // the path after Prefix, as gin writes it
}

// Routes returns every route that needs an operator's key.
func Routes() []Route {
	return []Route{
		{http.MethodGet, "/brokers"},
		{http.MethodPost, "/brokers"},
		{http.MethodGet, "/brokers/:name"},
		{http.MethodPatch, "/brokers/:name"},
		{http.MethodGet, "/keys"},
		{http.MethodPost, "/keys"},
		{http.MethodGet, "/keys/:id"},
		{http.MethodPatch, "/keys/:id"},
		{http.MethodPost, "/keys/:id/rotate"},
		{http.MethodPost, "/keys/:id/revoke"},
		{http.MethodGet, "/keys/:id/usage"},
		{http.MethodGet, "/audit"},
		{http.MethodGet, "/audit/verify"},
	}
}
