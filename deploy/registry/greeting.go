package registry

import (
	"fmt"
	"strings"
)

// Greeting returns the text that a started registry prints: its address, its data
// directory, its pages, its documentation and, if sandbox keys are on, two example requests.
func Greeting(c Config, addr string) string {
	var b strings.Builder
	own, listens := c.scheme()+"://"+addr, ""
	if c.BaseURL != "" {
		own, listens = strings.TrimSuffix(c.BaseURL, "/"), " and listens at "+addr
	}
	fmt.Fprintf(&b, "The asset registry answers at %s%s, with its data in %s.\n", own, listens, c.Data)
	if c.Search {
		fmt.Fprintf(&b, "Pages for people are at the same address, in a browser.\n")
	}
	if base := c.filesURL(addr); base == "" {
		fmt.Fprintf(&b, "Uploads of files are refused until --base-url names the public address.\n")
	} else {
		fmt.Fprintf(&b, "Addresses of uploaded files start with %s, for ever.\n", base)
	}
	fmt.Fprintf(&b, "Guides and the reference of the API are at %s/docs.\n", own)
	if !c.Sandbox {
		return b.String()
	}
	fmt.Fprintf(&b, "Sandbox keys are on. Create an asset with the broker key \"broker\":\n\n")
	fmt.Fprintf(&b, "  curl -u broker: -H 'Content-Type: application/json' "+
		"'%s/api/2.5/assets?opt_pretty=1' --data '%s'\n\n", own, exampleAsset)
	fmt.Fprintf(&b, "Read the feed:\n\n  curl '%s/api/2.5/assets?opt_pretty=1'\n\n"+
		"The new asset is a draft. The feed lists it once it is published: see README.md.\n", own)
	return b.String()
}

const exampleAsset = `{"data":{"assetType":"bounce","title":"Office, 240 m2","description":"Ground floor",` +
	`"items":[{"description":"Office",` +
	`"classification":{"scheme":"CAV-PS","id":"04121000-2","description":"Premises"},` +
	`"unit":{"code":"MTK"},"quantity":240.5,"address":{"countryName":"Ukraine"},` +
	`"registrationDetails":{"status":"unknown"}}],` +
	`"decisions":[{"decisionDate":"2026-11-20T12:00:00+02:00","decisionID":"1637-10"}],` +
	`"assetCustodian":{"name":"State Property Fund","identifier":{"scheme":"UA-EDR","id":"00032945"},` +
	`"address":{"countryName":"Ukraine"},"contactPoint":{"name":"Registrar","telephone":"+380440000000"}}}}`
