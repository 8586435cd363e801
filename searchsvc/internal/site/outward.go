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
	Map    string `name:"map-url" default:"${map_url}" placeholder:"URL" help:"${map_url_help}"`
	Search string `name:"map-search-url" default:"${map_search_url}" placeholder:"URL" help:"${map_search_url_help}"`
	Sale   string `name:"sale-url" placeholder:"URL" help:"${sale_url_help}"`
}

// HelpTexts implements config.HelpTexts.
func (Links) HelpTexts() map[string]string {
	const openStreetMap = "https://www.openstreetmap.org/"
	return map[string]string{
		"map_url":        openStreetMap + "?mlat={latitude}&mlon={longitude}#map=17/{latitude}/{longitude}",
		"map_search_url": openStreetMap + "search?query={address}",
		"map_url_help": "Address of a map of the place of an item, with {latitude} and {longitude}. It begins with https. " +
			"Empty: none.",
		"map_search_url_help": "Address of a map for an item without coordinates, with {address}. Empty: none.",
		"sale_url_help": "Address of the lot or the sale of an asset, with {type}, {id} and {identifier} of its related " +
			"process. By default none.",
	}
}

// mostOutward is the largest number of bytes of a template, and of an address that is made from it.
const mostOutward = 2000

var (
	placeholder = regexp.MustCompile(`\{[a-z]+\}`)
	addressable = regexp.MustCompile(`^https://[a-zA-Z0-9.-]+(:[0-9]+)?[/?#][!#$%&'()*+,./0-9:;=?@A-Z_a-z~-]*$`)
)

// Validate returns every fault of the templates. It names each faulty template by its setting.
func (l Links) Validate() error {
	return errors.Join(
		checkOutward("--map-url", l.Map, "latitude", "longitude"),
		checkOutward("--map-search-url", l.Search, "address"),
		checkOutward("--sale-url", l.Sale, "type", "id", "identifier"),
	)
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

// linkTo returns the address that a template makes of values. It returns "" if the address is too long, and if the
// value of a placeholder is absent or could change the rest of the path.
func linkTo(to string, values map[string]string) template.URL {
	fits := to != ""
	address := placeholder.ReplaceAllStringFunc(to, func(name string) string {
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
func (l Links) onMap(item cursor) template.URL {
	at := item.in("location")
	latitude, longitude := at.v.string("latitude"), at.v.string("longitude")
	if isDegree(latitude, 90) && isDegree(longitude, 180) {
		if link := linkTo(l.Map, map[string]string{"latitude": latitude, "longitude": longitude}); link != "" {
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
	return linkTo(l.Search, map[string]string{"address": strings.Join(parts, ", ")})
}

// isDegree reports whether a text is a plain number whose absolute value is at most the given one.
func isDegree(text string, most float64) bool {
	degrees, err := strconv.ParseFloat(text, 64)
	return err == nil && plain.MatchString(text) && degrees >= -most && degrees <= most
}

// toSale returns the link to the sale of a related process.
func (l Links) toSale(process cursor) template.URL {
	return linkTo(l.Sale, map[string]string{
		"type": process.v.string("type"), "id": process.v.string("relatedProcessID"),
		"identifier": process.v.string("identifier"),
	})
}
