package assetsvc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCodeListsAreReadWhole(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		says  []string // of what is wrong; nil: nothing is
	}{
		"two lists":        {map[string]string{"CPV.txt": "03111000-2 Seeds\n", "kvtspz.txt": "01.01\n", ".hidden": "x"}, nil},
		"none":             {nil, []string{"has no file such as CPV.txt"}},
		"faults in two":    {map[string]string{"CPV.txt": "x\n", "CPVS.txt": "y\n"}, []string{"CPV.txt: line 1", "CPVS.txt: line 1"}},
		"a misspelt one":   {map[string]string{"CPV.txt": "03111000-2\n", "DK018.txt": "1110\n"}, []string{`DK018.txt: "DK018" is no scheme`}},
		"one of no text":   {map[string]string{"CPV.csv": "03111000-2\n"}, []string{"CPV.csv: the name of a list"}},
		"one far too long": {map[string]string{"CPV.txt": "#" + strings.Repeat("x", maxCodeList)}, []string{"CPV.txt: it has more than"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := Config{CodeLists: dir}.Validate() // of a configuration with other faults, too
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want it to say %s", err, says)
				}
			}
			if c.says == nil && strings.Contains(err.Error(), "code list") {
				t.Errorf("got %v, want nothing about code lists", err)
			}
		})
	}
	if err := (Config{CodeLists: filepath.Join(t.TempDir(), "none")}).Validate(); !strings.Contains(err.Error(), "read code lists") {
		t.Errorf("no directory: got %v, want that it cannot be read", err)
	}
}
