package assetsvc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestCodeListsAreReadWhole(t *testing.T) {
	type files map[string]string
	for _, c := range []struct {
		name  string
		files files
		want  []string // substrings of the error; nil: no error about code lists
	}{
		{"two lists", files{"CPV.txt": "03111000-2 Seeds\n", "kvtspz.txt": "01.01\n", ".hidden": "x"}, nil},
		{"schemes of identifiers", files{"identifier-schemes.txt": "UA-NEW\n"}, nil},
		{"names only, which are no list", files{"CPV.uk.json": "{", "CAV-PS.en.json": "{}"}, nil},
		{"names without a language", files{"CPV.json": "{}"}, []string{"CPV.json: the name of a list"}},
		{"no list", nil, []string{"has no file such as CPV.txt"}},
		{"faults in two lists", files{"CPV.txt": "x\n", "CPVS.txt": "y\n"},
			[]string{"CPV.txt: line 1", "CPVS.txt: line 1"}},
		{"a misspelt scheme", files{"CPV.txt": "03111000-2\n", "DK018.txt": "1110\n"},
			[]string{`DK018.txt: "DK018" is not a scheme`}},
		{"a file without .txt", files{"CPV.csv": "03111000-2\n"}, []string{"CPV.csv: the name of a list"}},
		{"a file above the size limit", files{"CPV.txt": "#" + strings.Repeat("x", maxCodeList)},
			[]string{"CPV.txt: it has more than"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				expect.OK(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			err := Config{CodeLists: dir}.Validate() // the configuration has other faults too, which do not matter here
			for _, want := range c.want {
				expect.ErrorIf(t, !strings.Contains(err.Error(), want), "got %v, want an error with %q", err, want)
			}
			if c.want == nil && strings.Contains(err.Error(), "code list") {
				t.Errorf("got %v, want no error about code lists", err)
			}
		})
	}
	err := Config{CodeLists: filepath.Join(t.TempDir(), "none")}.Validate()
	if !strings.Contains(err.Error(), "read code lists") {
		t.Errorf("missing directory: got %v, want an error with %q", err, "read code lists")
	}
}
