package ukrainian

import (
	_ "embed"
	"slices"
	"strings"
)

// renamedList has the places that were renamed. Its first lines describe its form.
//
//go:embed renamed.txt
var renamedList string

// renamed is a place that was renamed.
type renamed struct {
	former, present, region string
	isShared                bool // several places had the former name, or another place has it today
}

// renamedPlaces has the renamed places by the keys (Place) of both names. sharedNames has those with a shared former
// name by the keys of its word.
var renamedPlaces, sharedNames = func() (byName, byWord map[string][]renamed) {
	byName, byWord = map[string][]renamed{}, map[string][]renamed{}
	for line := range strings.Lines(renamedList) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		names, rest, _ := strings.Cut(line, " : ")
		region, _, _ := strings.Cut(rest, " : ")
		former, present, _ := strings.Cut(names, " = ")
		r := renamed{former, present, region, false}
		if r.former, r.isShared = strings.CutPrefix(former, "!"); r.isShared {
			word, _, _ := strings.Cut(Place(r.former), " ")
			for _, key := range keys(word) {
				byWord[key] = append(byWord[key], r)
			}
		}
		for _, name := range []string{r.former, r.present} {
			byName[Place(name)] = append(byName[Place(name)], r)
		}
	}
	return byName, byWord
}()

func (r renamed) isDistrict() bool { return strings.HasSuffix(r.former, districtWord) }

const districtWord = " район"

// isDistrictWord reports whether a word of a question stands behind the name of a district.
func isDistrictWord(w Asked) bool {
	return w.Text == "р" || strings.HasPrefix(w.Text, districtWord[1:])
}

// besideRegion returns the key by which a question that names the region finds a place with a shared former name. No
// word and no beginning of a word has such a key.
func (r renamed) besideRegion() string { return "~" + Place(r.former) + " " + r.region }

// Renamed returns further names of the places in a locality of an address, and keys of former names that count only
// beside their region (Former).
func Renamed(locality, region string) (names, beside []string) {
	region = Region(region)
	for part := range strings.SplitSeq(locality, ",") {
		place := Place(part)
		if name, ok := strings.CutSuffix(place, " р н"); ok {
			place = name + districtWord
		}
		for _, r := range renamedPlaces[place] {
			switch isFormer := place == Place(r.former); {
			case region != r.region && (region != "" || r.isShared):
				continue
			case isFormer:
				names = append(names, r.present)
			case !r.isShared:
				names = append(names, r.former)
			}
			if r.isShared {
				beside = append(beside, r.besideRegion())
			}
		}
	}
	return names, beside
}

// Former returns a key for each word of a question that is a shared former name of a place in a region of the question:
// one of the argument `regions`, or one that the question names. The indexes are those of the words.
func Former(words []Asked, regions []string) map[int]string {
	found := map[int]string{}
	for i, w := range words {
		for _, key := range w.Keys {
			for _, r := range sharedNames[key] {
				if r.isDistrict() && (i+1 == len(words) || !isDistrictWord(words[i+1])) {
					continue
				}
				isRegion := func(other Asked) bool { return slices.ContainsFunc(other.Keys, regionWords(r.region)) }
				if slices.ContainsFunc(regions, func(name string) bool { return Region(name) == r.region }) ||
					slices.ContainsFunc(words, isRegion) {
					found[i] = r.besideRegion()
				}
			}
		}
	}
	return found
}

// regionWords returns a function that reports whether a key is one of a word that names a region.
func regionWords(region string) func(key string) bool {
	var all []string
	for name, key := range regionKeys {
		if key == region && !strings.Contains(name, " ") {
			all = append(all, keys(name)...)
		}
	}
	return func(key string) bool { return slices.Contains(all, key) && !strings.HasPrefix(key, verbMark) }
}

// FormerName returns a former name of one word that has a key; "" if there is none.
func FormerName(key string) string {
	at := slices.IndexFunc(FormerNames(), func(name string) bool { return slices.Contains(keys(Place(name)), key) })
	if at < 0 {
		return ""
	}
	return FormerNames()[at]
}

// FormerNames returns the former names of places, in their order.
func FormerNames() (names []string) {
	for _, list := range renamedPlaces {
		for _, r := range list {
			names = append(names, r.former)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
