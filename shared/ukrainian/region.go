package ukrainian

import (
	_ "embed"
	"slices"
	"strings"
)

// regionNames are the regions of Ukraine. Each line has the key, the Ukrainian and the English name, and further
// spellings in Ukrainian, Russian and English, also colloquial ones. The spellings do not have words such as область,
// because Place drops these words.
//
//go:embed regions.txt
var regionNames string

// RegionName is a region of Ukraine with its names for people.
type RegionName struct{ Key, Uk, En string }

// regions has all regions. regionKeys has the key of a region for each of its spellings, in the form that Place
// returns.
var regions, regionKeys = func() (all []RegionName, keys map[string]string) {
	keys = map[string]string{}
	for _, line := range strings.Split(strings.ReplaceAll(strings.TrimSpace(regionNames), ",\n\t", ", "), "\n") {
		names, others, _ := strings.Cut(line, ":")
		n := strings.Split(names, " = ")
		all = append(all, RegionName{n[0], n[1], n[2]})
		keys[n[0]] = n[0]
		for other := range strings.SplitSeq(others, ",") {
			keys[Place(other)] = n[0]
		}
	}
	slices.SortFunc(all, func(a, b RegionName) int { return strings.Compare(a.Key, b.Key) })
	return all, keys
}()

// Region returns the key of the name of a region. All spellings of a region have one key. For any other name it
// returns what Place returns.
func Region(name string) string {
	key := Place(name)
	if known, ok := regionKeys[key]; ok {
		return known
	}
	return key
}

// Regions returns all regions of Ukraine, in the order of their keys.
func Regions() []RegionName { return slices.Clone(regions) }

// maxPlace is the maximum number of characters of a place's name. Further characters are dropped.
const maxPlace = 200

// Place returns the key of the name of a region or a locality. The key does not have the words
// for a kind of place, such as область.
func Place(name string) string {
	name = Cut(name, maxPlace)
	var kept []string
	for w := range splitAll(name) {
		parts := w.parts
		if w.isCode {
			parts = []string{w.text}
		}
		for _, part := range parts {
			if !kindsOfPlaces[part] {
				kept = append(kept, strings.ReplaceAll(fold(part), string(apostrophe), ""))
			}
		}
	}
	if len(kept) == 0 {
		return Cut(strings.Join(strings.Fields(normal(name)), " "), maxPlace)
	}
	return Cut(strings.Join(kept, " "), maxPlace)
}

var kindsOfPlaces = map[string]bool{
	"область": true, "обл": true, "м": true, "місто": true, "с": true, "село": true, "смт": true, "селище": true,
	"сел": true, "oblast": true, "region": true,
}
