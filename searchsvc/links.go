package searchsvc

import "asset-registry/searchsvc/internal/site"

// Links are templates for addresses on other sites, to which pages link (docs/site.md, "Links to other sites").
// An empty template makes no links.
type Links struct {
	MapURL       string `name:"map-url" default:"${map_url}" placeholder:"URL" help:"${map_url_help}"`
	MapSearchURL string `name:"map-search-url" default:"${map_search_url}" placeholder:"URL" help:"${map_search_url_help}"`
	SaleURL      string `name:"sale-url" placeholder:"URL" help:"${sale_url_help}"`
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

// site returns the templates in the type that package site takes.
func (l Links) site() site.Links {
	return site.Links{Map: l.MapURL, Search: l.MapSearchURL, Sale: l.SaleURL}
}
