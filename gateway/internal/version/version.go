// Package version is the table of the API's versions as the edge knows them:
// which there are, and what each is forwarded as. What a version accepts and
// shows is the asset service's to know.
package version

// Version is one version of the API.
type Version struct {
	Name string // the segment of the path
	As   string // the version that it is forwarded as
}

// Current is the version that 0 stands for (contract, decision 12).
const Current = "2.5"

// Table lists every version; a new one is one more row.
var Table = []Version{
	{Name: "2.4", As: "2.4"},
	{Name: "2.5", As: "2.5"},
	{Name: "0", As: Current},
}
