package index

import (
	"cmp"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/searchsvc/internal/search"
)

// Limits of the names of values.
const (
	mostNames    = 64   // spellings of the name of a place or a custodian that are compared in a segment
	mostSaid     = 1024 // descriptions of a code that are compared in a segment
	keptSaid     = 4    // descriptions of a code that are remembered for a segment
	mostSayers   = 16   // custodians that are remembered as users of a description, for a segment
	leastSayers  = 3    // custodians who must use a description before it names a code
	maxSaid      = 120  // characters of a name that comes from descriptions
	mostNameless = 1024 // values without a name that are remembered for a segment
)

// nameOf returns the name of a value of a property. The name of a code comes from the operator's lists. If the
// lists do not have the code, its name is the description that most custodians use.
func (v *view) nameOf(property search.FacetName, value string) (name codenames.Name, err error) {
	p := search.PropertyOf(property)
	if p.Levels == nil {
		name.Uk, err = v.commonName(p.Names, value)
		return name, err
	}
	if name = v.names.Classification(value); name.Uk != "" {
		return name, nil
	}
	said, err := v.saidName(p.Names, value)
	name.Uk = cmp.Or(said, name.En)
	return name, err
}

// commonName looks for the largest segment with a name for the value. It returns the most common name in this segment.
func (v *view) commonName(field, value string) (name string, err error) {
	if field == "" {
		return "", nil
	}
	var size uint32
	for i := range v.parts {
		p := &v.parts[i]
		if p.count <= size {
			continue
		}
		found, err := p.nameOf(field, value)
		if err != nil {
			return "", err
		}
		if found != "" {
			name, size = found, p.count
		}
	}
	return name, nil
}

// namedValue is a value whose name a search has needed.
type namedValue struct{ field, value string }

// nameOf returns the same name as the function commonName, and remembers the name, because a segment never changes.
func (p *part) nameOf(field, value string) (string, error) {
	asked := namedValue{field, value}
	if known, ok := p.names.Load(asked); ok {
		return known.(string), nil
	}
	name, err := commonName(p.segment, field, value)
	if err == nil && p.remembers(name != "") {
		p.names.Store(asked, name)
	}
	return name, err
}

// commonName returns the name that most assets of a segment use for a value.
func commonName(s segment.Segment, field, value string) (name string, err error) {
	dictionary, err := s.Dictionary(field)
	if err != nil {
		return "", err
	}
	start, end := value+nameSeparator, value+"\x01"
	names := dictionary.AutomatonIterator(nil, []byte(start), []byte(end))
	var most uint64
	for range mostNames {
		entry, err := names.Next()
		if err != nil || entry == nil {
			return name, err
		}
		if entry.Count > most {
			name, most = strings.TrimPrefix(entry.Term, start), entry.Count
		}
	}
	return name, nil
}

// saidName returns the description that most custodians use for a code. It returns "" if fewer than leastSayers
// custodians use the same one. A custodian counts once, however many assets it describes.
func (v *view) saidName(field, code string) (string, error) {
	custodians := map[string]map[uint32]bool{} // the keys are descriptions
	for i := range v.parts {
		all, err := v.parts[i].said(field, code)
		if err != nil {
			return "", err
		}
		for _, s := range all {
			if custodians[s.name] == nil {
				custodians[s.name] = map[uint32]bool{}
			}
			for _, one := range s.by {
				custodians[s.name][one.custodian] = true
			}
		}
	}
	best, most := "", leastSayers-1
	for name, by := range custodians {
		if len(by) > most || len(by) == most && best != "" && name < best {
			best, most = name, len(by)
		}
	}
	return codenames.Tidy(best, maxSaid), nil
}

// said is a description of a code in the assets of a segment.
type said struct {
	name string
	by   []sayer // at most one for each custodian
}

// sayer is the number of a custodian who uses a description, and the number of one of the custodian's assets with
// this description.
type sayer struct{ custodian, asset uint32 }

// said returns the descriptions that most custodians of a segment use for a code. It remembers these descriptions until
// one of the assets from which it took them is no longer in the view.
func (p *part) said(field, code string) ([]said, error) {
	asked := namedValue{field, code}
	if known, ok := p.saids.Load(asked); ok && p.areLiving(known.([]said)) {
		return known.([]said), nil
	}
	all, err := p.readSaid(field, code)
	if err == nil && p.remembers(len(all) > 0) {
		p.saids.Store(asked, all)
	}
	return all, err
}

// remembers reports whether the answer for a value may be remembered. Every name may be remembered. For values
// without a name, only the first mostNameless answers may, because clients may ask for any value.
func (p *part) remembers(found bool) bool { return found || p.nameless.Add(1) <= mostNameless }

func (p *part) areLiving(all []said) bool {
	return p.deleted == nil || !slices.ContainsFunc(all, func(s said) bool {
		return slices.ContainsFunc(s.by, func(one sayer) bool { return p.deleted.Contains(one.asset) })
	})
}

func (p *part) readSaid(field, code string) (all []said, err error) {
	r, err := newReader(p.segment, field)
	if err != nil {
		return nil, err
	}
	start, end := spanOfCode(code)
	names := r.dictionary.AutomatonIterator(nil, []byte(start), []byte(end))
	for range mostSaid {
		entry, err := names.Next()
		if err != nil {
			return nil, err
		}
		if entry == nil {
			break
		}
		having, err := r.postings(entry.Term)
		if err != nil {
			return nil, err
		}
		_, name, _ := strings.Cut(entry.Term, nameSeparator)
		if by := p.sayers(having); len(by) > 0 {
			all = append(all, said{name, by})
		}
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(len(b.by), len(a.by)) })
	return slices.Clone(all[:min(len(all), keptSaid)]), nil
}

// spanOfCode returns the range of the terms that have a code and one of its names. If the argument has only the first
// digits of a code, it stands for the code of a division, group or class: the remaining digits of that code are 0.
func spanOfCode(code string) (start, end string) {
	if strings.Contains(code, "-") {
		return code + nameSeparator, code + "\x01"
	}
	code += strings.Repeat("0", max(0, wholeLevel-len(code)))
	return code + "-", code + "."
}

// sayers returns some of the custodians that the given assets have. For each custodian, it also returns one of
// these assets.
func (p *part) sayers(having postings) (all []sayer) {
	living := roaring.New()
	having.addTo(living)
	if p.deleted != nil {
		living.AndNot(p.deleted)
	}
	custodians := p.facets[facetColumn{name: search.ByCustodian}]
	for i, set := range custodians.sets {
		if both := roaring.And(living, set); !both.IsEmpty() && len(all) < mostSayers {
			all = append(all, sayer{custodians.totals[i].value, both.Minimum()})
		}
	}
	if custodians.sets != nil {
		return all
	}
	for i := living.Iterator(); i.HasNext() && len(all) < mostSayers; {
		asset := i.Next()
		custodian := custodians.of[asset] // an asset has one custodian
		if custodian != noValue && !slices.ContainsFunc(all, func(s sayer) bool { return s.custodian == custodian }) {
			all = append(all, sayer{custodian, asset})
		}
	}
	return all
}
