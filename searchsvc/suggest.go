package searchsvc

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/fault"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/routes"
)

// suggestPath is the path of suggestions as the gateway requests it.
const suggestPath = "/api/" + routes.Current + routes.Suggest

// suggest answers with texts that continue the last word of a question (docs/contract.md, "Search").
func (s *Server) suggest(c *gin.Context) error {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return fault.New(fault.Invalid, fault.Query, "query", "The query string is malformed: %s.", err)
	}
	if err := refuseUnknown(values, []string{"q"}); err != nil {
		return err
	}
	text := values.Get("q")
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > search.MaxText {
		return fault.New(fault.Invalid, fault.Query, "q", "The text may have %d characters of UTF-8.", search.MaxText)
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
