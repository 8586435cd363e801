package site

import (
	"net/http"

	"asset-registry.example/client"
)

// aboutPage is the body of the page about the registry.
type aboutPage struct {
	Base   string
	Keys   []string // public keys of the log
	States []client.Status
}

// about shows the page about the registry, its API, its mirrors and its log.
func (s *Site) about(w http.ResponseWriter, r request) error {
	v := s.view(r, texts["about.title"].in(r.lang), aboutPage{
		Base: r.base, Keys: s.config.LogKeys,
		States: []client.Status{client.Pending, client.Verification, client.Active, client.Complete, client.Deleted},
	})
	v.About, v.Section = texts["about.about"].in(r.lang), "about"
	return s.show(w, r, http.StatusOK, "about", v)
}
