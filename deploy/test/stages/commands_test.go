package stages

import (
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"asset-registry/shared/testing/expect"
)

// testCommand is a "go test" in the Makefile, a script or a document.
type testCommand struct {
	text     string
	packages []string          // folders, relative to the root
	patterns map[string]string // values of -run, -skip, -bench and -fuzz; the keys are the flags
}

var (
	goTest    = regexp.MustCompile(`(?m)^(.*?)\bgo test (.*)$`)
	folder    = regexp.MustCompile(`\bcd "?([\w./-]+)"? &&`)
	assigned  = regexp.MustCompile(`(?m)^packages=(\$\(.*\)) &&`)
	selecting = regexp.MustCompile(`^(-run|-skip|-bench|-fuzz)(?:=(.*))?$`)
)

// commands finds each "go test" in a text.
func commands(t *testing.T, text string) (found []testCommand) {
	t.Helper()
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, line := range goTest.FindAllStringSubmatch(text, -1) {
		dir := "."
		if cd := folder.FindStringSubmatch(line[1]); cd != nil {
			dir = cd[1]
		}
		c := testCommand{text: "go test " + line[2], patterns: map[string]string{}}
		all := words(line[2])
		for i, word := range all {
			if flag := selecting.FindStringSubmatch(word); flag != nil {
				c.patterns[flag[1]] = flag[2]
				if word == flag[1] && i+1 < len(all) {
					c.patterns[flag[1]] = all[i+1]
				}
			}
			switch {
			case word == "." || strings.HasPrefix(word, "./"):
				c.packages = append(c.packages, path.Join(dir, word))
			case word == "$packages":
				c.packages = append(c.packages, listed(t, assigned.FindStringSubmatch(line[1]))...)
			}
		}
		found = append(found, c)
	}
	return found
}

// words splits the first command in a line into words, as a shell does.
func words(line string) (split []string) {
	var word strings.Builder
	quote, within := rune(0), false
	for _, c := range line + "\n" {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, within = c, true
		case strings.ContainsRune(" \t\n&|;`)>", c):
			if within || word.Len() > 0 {
				split = append(split, word.String())
			}
			if c != ' ' && c != '\t' {
				return split
			}
			word.Reset()
			within = false
		default:
			word.WriteRune(c)
		}
	}
	return split
}

// lists is a cache of the results of the function `listed`.
var lists = map[string][]string{}

// listed returns the folders of the packages that a shell expression lists.
func listed(t *testing.T, expression []string) (folders []string) {
	t.Helper()
	if expression == nil {
		t.Fatal("got a list of packages without its command")
	}
	if folders, known := lists[expression[1]]; known {
		return folders
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "go list -f '{{.Dir}}' "+expression[1])
	cmd.Dir = root
	printed, err := cmd.Output()
	expect.Must(t, err, "%s", expression[1])
	absolute, err := filepath.Abs(root)
	expect.OK(t, err)
	for _, folder := range strings.Fields(string(printed)) {
		folders = append(folders, strings.TrimPrefix(folder, absolute+"/"))
	}
	lists[expression[1]] = folders
	return folders
}

func TestCommandsAreRead(t *testing.T) {
	got := commands(t, "\tcd a/b && GOWORK=off go test -count=1 -run '^(A|B)$' . -x ./c || exit 1\n"+
		"see `go test ./d -skip=x`, or more\ngo test \\\n\t-bench \"y z\" ./e | tail\n")
	want := []testCommand{
		{text: "go test -count=1 -run '^(A|B)$' . -x ./c || exit 1", packages: []string{"a/b", "a/b/c"},
			patterns: map[string]string{"-run": "^(A|B)$"}},
		{text: "go test ./d -skip=x`, or more", packages: []string{"d"}, patterns: map[string]string{"-skip": "x"}},
		{text: `go test  	-bench "y z" ./e | tail`, packages: []string{"e"}, patterns: map[string]string{"-bench": "y z"}},
	}
	expect.NoDiff(t, cmp.Diff(want, got, cmp.AllowUnexported(testCommand{})), "")
}
