package searchsvc

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// suggestPath is the path of suggestions as the gateway requests it.
const suggestPath = "/api/" + routes.Current + routes.Suggest

// suggest answers with texts that continue the last words of a question (docs/contract.md, "Search").
func (s *Server) suggest(c *gin.Context) error {
	values, faults := readQuery(c, search.OfSuggestions)
	q, err := search.Parse(values, nil, faults...)
	if err != nil {
		return err
	}
	q.Text = strings.TrimLeft(values.Get("q"), " ") // a blank at its end ends its last word
	end, err := s.Turn(c.Request.Context(), c.GetHeader(httpserver.CallerHeader))
	if err != nil {
		return err
	}
	defer end()
	found, err := s.keeper.suggest(c.Request.Context(), q)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string][]string{"data": append([]string{}, found...)})
	if err != nil {
		return fmt.Errorf("encode the suggestions: %w", err)
	}
	contentType, body, err := dressed(body, values)
	if err != nil {
		return err
	}
	end() // a slow client must not hold the turn
	return s.send(c, contentType, body)
}
