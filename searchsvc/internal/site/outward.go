package site

import (
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Links are templates for addresses on other sites (docs/site.md, "Links to other sites"). An empty template
// makes no links.
type Links struct {
	Map    string // placeholders: {latitude}, {longitude}
	Search string // for the search of a map; placeholder: {address}
	Sale   string // placeholders, from a related process: {type}, {id}, {identifier}
}

// mostOutward is the largest number of bytes of a template, and of an address that is made from it.
const mostOutward = 2000

var (
	placeholder = regexp.MustCompile(`\{[a-z]+\}`)
	addressable = regexp.MustCompile(`^https://[a-zA-Z0-9.-]+(:[0-9]+)?[/?#][!#$%&'()*+,./0-9:;=?@A-Z_a-z~-]*$`)
)

// outward is a template that was checked. The zero value makes no links.
type outward string

// outwards are the templates of a site.
type outwards struct{ places, search, sale outward }

// parse checks all templates. The error names each faulty template by its setting.
func (l Links) parse() (outwards, error) {
	return outwards{outward(l.Map), outward(l.Search), outward(l.Sale)}, errors.Join(
		checkOutward("--map-url", l.Map, "latitude", "longitude"),
		checkOutward("--map-search-url", l.Search, "address"),
		checkOutward("--sale-url", l.Sale, "type", "id", "identifier"),
	)
}

// Validate returns every fault of the templates.
func (l Links) Validate() error {
	_, err := l.parse()
	return err
}

// checkOutward checks that a template is an address with https. The template must have at least one placeholder. All
// placeholders must have one of the given names, and must stand after the host.
func checkOutward(setting, text string, names ...string) error {
	var said []string
	for _, name := range names {
		said = append(said, "{"+name+"}")
	}
	found := placeholder.FindAllString(text, -1)
	plain := placeholder.ReplaceAllString(text, "x")
	host := strings.IndexAny(strings.TrimPrefix(text, "https://"), "/?#")
	first := strings.IndexByte(strings.TrimPrefix(text, "https://"), '{')
	_, err := url.Parse(plain)
	switch {
	case text == "":
		return nil
	case len(text) > mostOutward:
		return fmt.Errorf("%s must have at most %d characters", setting, mostOutward)
	case err != nil || !addressable.MatchString(plain) || host < 0 || first >= 0 && first < host:
		const says = "%s must be an address that begins with https:// and a host, with the placeholders behind it"
		return fmt.Errorf(says, setting)
	case len(found) == 0 || slices.ContainsFunc(found, func(f string) bool { return !slices.Contains(said, f) }):
		return fmt.Errorf("%s must have placeholders among %s, and no others", setting, strings.Join(said, ", "))
	}
	return nil
}

// link returns the address for the given values. It returns "" if the address is too long. It also returns "" if the
// value of a placeholder is absent, or could change the rest of the path.
func (o outward) link(values map[string]string) template.URL {
	fits := o != ""
	address := placeholder.ReplaceAllStringFunc(string(o), func(name string) string {
		value := values[strings.Trim(name, "{}")]
		fits = fits && strings.Trim(value, ". ") != ""
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	})
	if !fits || len(address) > mostOutward {
		return ""
	}
	return template.URL(address)
}

// onMap returns the link to an item on a map: by its coordinates, or by its address if it has no coordinates.
func (o outwards) onMap(item cursor) template.URL {
	at := item.in("location")
	latitude, longitude := at.v.string("latitude"), at.v.string("longitude")
	if isDegree(latitude, 90) && isDegree(longitude, 180) {
		if link := o.places.link(map[string]string{"latitude": latitude, "longitude": longitude}); link != "" {
			return link
		}
	}
	address := item.in("address")
	if address.v.string("locality") == "" && address.v.string("streetAddress") == "" {
		return ""
	}
	var parts []string
	for _, name := range []string{"streetAddress", "locality", "region", "countryName"} {
		if said := address.v.string(name); said != "" {
			parts = append(parts, said)
		}
	}
	return o.search.link(map[string]string{"address": strings.Join(parts, ", ")})
}

// isDegree reports whether a text is a plain number whose absolute value is at most the given one.
func isDegree(text string, most float64) bool {
	degrees, err := strconv.ParseFloat(text, 64)
	return err == nil && plain.MatchString(text) && degrees >= -most && degrees <= most
}

// toSale returns the link to the sale of a related process.
func (o outwards) toSale(process cursor) template.URL {
	return o.sale.link(map[string]string{
		"type": process.v.string("type"), "id": process.v.string("relatedProcessID"),
		"identifier": process.v.string("identifier"),
	})
}
