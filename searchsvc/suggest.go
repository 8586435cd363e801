package searchsvc

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/query"
	"asset-registry/shared/routes"
)

// suggestPath is the path of suggestions as the gateway requests it.
const suggestPath = "/api/" + routes.Current + routes.Suggest

// suggest answers with texts that continue the last word of a question (docs/contract.md, "Search").
func (s *Server) suggest(c *gin.Context) error {
	values, faults := readQuery(c, query.Params{Names: []string{"q"}})
	text := values.Get("q")
	if utf8.RuneCountInString(text) > search.MaxText {
		faults = append(faults, fault.Detail{Location: fault.Query, Name: "q",
			Description: fmt.Sprintf("The text may have %d characters.", search.MaxText)})
	}
	if len(faults) > 0 {
		return &fault.Error{Kind: fault.Invalid, Details: faults}
	}
	end, err := s.Turn(c.Request.Context(), c.GetHeader(httpserver.CallerHeader))
	if err != nil {
		return err
	}
	defer end()
	found, err := s.keeper.suggest(c.Request.Context(), strings.TrimLeft(text, " "))
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
