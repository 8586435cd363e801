package ratelimit

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// TestTheContractHasTheTables compares the limits that docs/contract.md states under "Rate limits" with the
// tables.
func TestTheContractHasTheTables(t *testing.T) {
	text, err := os.ReadFile("../../../docs/contract.md")
	expect.OK(t, err)
	_, section, _ := strings.Cut(string(text), "\n## Rate limits\n")
	section, _, _ = strings.Cut(section, "\n## ")
	production, sandbox := map[string][]int64{}, map[string][]int64{}
	for row := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		if len(cells) != 4 || !strings.Contains(cells[0], "`") {
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			production[name[1]] = numbers(t, cells[2])
			sandbox[name[1]] = numbers(t, cells[3])
			if strings.Contains(cells[3], "the same") {
				sandbox[name[1]] = production[name[1]]
			}
		}
	}
	for name, tables := range map[string]struct {
		table Table
		got   map[string][]int64
	}{"production": {Production(), production}, "sandbox": {Sandbox(), sandbox}} {
		want := map[string][]int64{}
		for _, p := range tables.table {
			want[p.Name] = slices.Sorted(maps.Values(p.Windows))
		}
		expect.NoDiff(t, cmp.Diff(want, tables.got), "the table %s", name)
	}
}

// numbers returns the numbers in a cell of a table, sorted. A cell is for example "100 a second, 3,000 a
// minute" or "100 MiB a minute, 1 GiB a day". Sizes are returned in bytes.
func numbers(t *testing.T, cell string) (all []int64) {
	t.Helper()
	units := map[string]int64{"": 1, "MiB": 1 << 20, "GiB": 1 << 30}
	for _, match := range regexp.MustCompile(`([0-9][0-9,]*)(?: (MiB|GiB))?`).FindAllStringSubmatch(cell, -1) {
		n, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSuffix(match[1], ","), ",", ""), 10, 64)
		expect.OK(t, err)
		all = append(all, n*units[match[2]])
	}
	slices.Sort(all)
	return all
}
