package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/config"
	"asset-registry/shared/testing/expect"
)

// TestSettingsOfTheSearchAreCheckedBeforeTheStart checks settings with files that are missing, faulty or valid,
// and with templates of links. Wrong settings must be refused.
func TestSettingsOfTheSearchAreCheckedBeforeTheStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := write("good.txt", "теплиця, оранжерея\n")
	for _, test := range []struct {
		args []string
		want string // text in the error; "": no error
	}{
		{[]string{"--search", "--synonyms", good}, ""},
		{[]string{"--synonyms", good}, "--synonyms needs --search"},
		{[]string{"--search", "--synonyms", filepath.Join(dir, "missing.txt")}, "--synonyms"},
		{[]string{"--search", "--synonyms", write("faulty.txt", "теплиця\n")}, "line 1"},
		{[]string{"--search", "--sale-url", "https://sales.example/{identifier}"}, ""},
		{[]string{"--search", "--sale-url", "http://sales.example/{id}"}, "--sale-url"},
	} {
		var c Config
		args := append([]string{"--data", filepath.Join(dir, "data")}, test.args...)
		_, err := config.Parse(&c, "registry", "", "REGISTRY_TEST", args)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.args, err, test.want)
		}
	}
}
