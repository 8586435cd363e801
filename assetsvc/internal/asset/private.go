package asset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"asset-registry/shared/assetfields"
)

// Group is a group of fields that an operator may hide from callers without an API key (docs/contract.md, "Hidden
// fields"). The field table names the group of each field. An operator cannot hide fields whose group is "".
type Group = assetfields.Group

// The groups.
const (
	Contacts  = assetfields.Contacts
	Addresses = assetfields.Addresses
	Locations = assetfields.Locations
)

var groups = []Group{Contacts, Addresses, Locations}

// ParseGroups returns the groups with these names, sorted and without duplicates. The error lists the names
// that do not exist.
func ParseGroups(names []string) ([]Group, error) {
	var all []Group
	var faults []error
	for _, name := range names {
		if !slices.Contains(groups, Group(name)) {
			known := strings.Trim(fmt.Sprint(groups), "[]")
			faults = append(faults, fmt.Errorf("there is no group %q of fields to hide; the groups are %s", name, known))
		}
		all = append(all, Group(name))
	}
	slices.Sort(all)
	return slices.Compact(all), errors.Join(faults...)
}

// HasGroups reports whether every group in the second list is also in the first one.
func HasGroups(others, some []Group) bool {
	return !slices.ContainsFunc(some, func(g Group) bool { return !slices.Contains(others, g) })
}
