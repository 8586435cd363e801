package site

import (
	"time"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/codenames"
	"asset-registry/shared/routes"
)

// The functions of this file return JSON-LD for pages (schema.org). html/template encodes it, and escapes the
// characters that could end the script element.

type linked map[string]any

const schema = "https://schema.org"

// linkedSite describes the site and its search.
func linkedSite(l Lang, base string) linked {
	return linked{
		"@context": schema, "@type": "WebSite", "name": texts["site.name"].in(l), "url": base + "/" + string(l) + "/",
		"inLanguage": string(l),
		"potentialAction": linked{
			"@type": "SearchAction", "query-input": "required name=q",
			"target": linked{"@type": "EntryPoint", "urlTemplate": base + "/" + string(l) + "/?q={q}"},
		},
	}
}

// linkedAsset describes the page of an asset.
func linkedAsset(l Lang, base string, root *value) linked {
	custodian := root.get("assetCustodian")
	thing := linked{
		"@type": "Thing", "name": codenames.Cut(root.string("title"), maxTitle),
		"description": codenames.Cut(root.string("description"), 1000),
		"identifier":  codenames.Cut(root.string("assetID"), maxTitle),
		"url":         base + "/" + string(l) + "/assets/" + root.string("id"),
	}
	site := linked{"@type": "WebSite", "name": texts["site.name"].in(l), "url": base + "/" + string(l) + "/"}
	return linked{
		"@context": schema, "@type": "ItemPage", "inLanguage": string(l), "mainEntity": thing,
		"dateModified": isoOf(root.string("dateModified")), "isPartOf": site,
		"accountablePerson": linked{"@type": "Organization", "name": codenames.Cut(custodian.string("name"), maxTitle)},
	}
}

// linkedData describes the registry as a data set.
func linkedData(l Lang, base string, at time.Time) linked {
	api := base + "/api/" + routes.Current
	return linked{
		"@context": schema, "@type": "Dataset", "name": texts["site.name"].in(l),
		"description": texts["site.about"].in(l), "url": base + "/" + string(l) + "/statistics",
		"isAccessibleForFree": true, "dateModified": at.UTC().Format(time.RFC3339),
		"distribution": []linked{
			{"@type": "DataDownload", "encodingFormat": "application/json", "contentUrl": api + "/snapshot"},
			{"@type": "DataDownload", "encodingFormat": "application/json", "contentUrl": api + "/assets"},
		},
	}
}

func isoOf(stamp string) string {
	return timeOf(client.Timestamp(stamp)).UTC().Format(time.RFC3339)
}
