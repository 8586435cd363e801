package searchsvc

import (
	"encoding/json"
	"fmt"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/site"
	"asset-registry/shared/routes"
	"asset-registry/shared/static"
)

// dictionariesPath is the path of the dictionaries as the gateway requests it.
const dictionariesPath = "/api/" + routes.Current + routes.Dictionaries

// newDictionaries returns the lists of values with their names (docs/contract.md, "Dictionaries"). They do not
// change while the program runs.
func newDictionaries(names codenames.Lists) (*static.File, error) {
	body, err := json.Marshal(map[string]any{"data": site.Dictionaries(names)})
	if err != nil {
		return nil, fmt.Errorf("encode the dictionaries: %w", err)
	}
	return static.New("application/json", "no-cache", append(body, '\n')), nil
}
