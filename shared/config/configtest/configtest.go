// Package configtest sets every setting of a server to wrong values.
package configtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/testing/expect"
)

// Server is a server whose settings are tried.
type Server struct {
	Name, Env, Command string
	Settings           func() any                            // an empty struct of settings
	Run                func(context.Context, []string) error // the program
	Needed             map[string]string                     // values without which no start succeeds
	IsLarge            bool                                  // reading its settings takes long: each value has one source
}

// values are wrong for nearly every setting. A few settings take some of them, such as the name of a file.
var values = []string{
	"", " ", "-1", "443", "127.0.0.1", "127.0.0.1:99999", ":nope", "1.5", "5 s", "yes?", "99999999999999999999",
	"http://", "https://a b/", "https://u:hunter2@h:x/?q", "/etc/passwd", "/dev/null/x", "ключ", "a=b", "10.0.0.0/33",
	"9.9.9:1",
	"[]", "{a: b}", "[[1], {b: c}]",
}

// structures is how many of the values, at the end of the list, are lists and tables. Only a file has them.
const structures = 3

// goWords are words of Go, of its packages and of libraries, which mean nothing to an operator.
var goWords = regexp.MustCompile(
	`\[\]interface|map\[|netip\.|strconv[.:]|unexpected EOF|%!|<nil>|parse "|invalid character`)

var settingName = regexp.MustCompile(`--[a-z][a-z-]*[a-z]`)

// Agree sets all settings to each value at once, by flags, variables and a file. The check must refuse most of them,
// each with its name and value. The server must refuse the same, with the same words. Then it sets only the settings
// that were not refused: the server must get as far as its port, which is in use.
func Agree(t *testing.T, s Server) {
	t.Helper()
	t.Chdir(t.TempDir()) // some values are taken for the names of files
	used := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer used.Close()
	s.Needed["addr"] = used.Addr().String()
	names := s.names(t)
	refused, taken := 0, 0
	for i, value := range values {
		isRaw := i >= len(values)-structures
		for n, source := range []string{"file", "flag", "variable"} {
			if isRaw && source != "file" || !isRaw && s.IsLarge && n != i%3 || raced && i%4 != 0 {
				continue
			}
			rest := names
			for len(rest) > 0 {
				said := s.try(t, rest, value, source, isRaw)
				left := slices.DeleteFunc(slices.Clone(rest), func(name string) bool { return said[name] })
				if len(left) == len(rest) {
					break
				}
				refused += len(rest) - len(left)
				rest = left
			}
			taken += len(rest)
		}
	}
	if refused < 2*taken {
		t.Errorf("got %d values refused and %d taken, want most refused", refused, taken)
	}
}

// names returns the names of all settings.
func (s Server) names(t *testing.T) (names []string) {
	t.Helper()
	var text strings.Builder
	expect.OK(t, config.Check(s.Settings(), s.Name, s.Env, s.Command, s.args(nil)[1:], &text))
	for line := range strings.Lines(text.String()) {
		if name, _, _ := strings.Cut(line, ":"); name != "config" {
			names = append(names, name)
		}
	}
	return names
}

// args returns a command line that has the needed settings, except some.
func (s Server) args(without []string) []string {
	args := []string{s.Command}
	for name, value := range s.Needed {
		if !slices.Contains(without, name) {
			args = append(args, "--"+name+"="+value)
		}
	}
	return args
}

// try sets settings to a value. It returns the names of those that are refused.
func (s Server) try(t *testing.T, names []string, value, source string, isRaw bool) map[string]bool {
	t.Helper()
	args := s.args(names)
	var file strings.Builder
	for _, name := range names {
		switch source {
		case "flag":
			args = append(args, "--"+name+"="+value)
		case "variable":
			variable := s.Env + "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			os.Setenv(variable, value)
			defer os.Unsetenv(variable)
		case "file":
			written := value
			if !isRaw {
				written = string(expect.Get(json.Marshal(value))(t))
			}
			file.WriteString(name + ": " + written + "\n")
		}
	}
	if source == "file" {
		path := filepath.Join(t.TempDir(), "c.yaml")
		expect.OK(t, os.WriteFile(path, []byte(file.String()), 0o600))
		args = append(args, "--config", path)
	}
	checked := config.Check(s.Settings(), s.Name, s.Env, s.Command, args[1:], io.Discard)
	done, cancel := context.WithCancel(t.Context())
	cancel() // a server that gets a free port ends at once
	served := s.Run(done, args)
	switch {
	case checked != nil && (!errors.Is(served, command.ErrSettings) || command.Words(served) != command.Words(checked)):
		t.Errorf("%s by %s %q: got the server's error %v, want that of the check: %v", names, source, value, served, checked)
	case checked == nil && !errors.Is(served, syscall.EADDRINUSE) && slices.Contains(names, "addr"):
		// The server has ended because of its context.
	case checked == nil && !errors.Is(served, syscall.EADDRINUSE):
		t.Errorf("%s by %s %q: the check passed, but the server said %v", names, source, value, served)
	}
	return s.told(t, checked, names, value, source, isRaw)
}

// told returns the settings that an error names. It must have each with its value, and no word of Go.
func (s Server) told(t *testing.T, err error, names []string, value, source string, isRaw bool) map[string]bool {
	t.Helper()
	all, _ := err.(interface{ Unwrap() []error })
	if err == nil {
		return nil
	}
	said := map[string]bool{}
	for _, fault := range all.Unwrap() {
		text, isNamed := command.Words(fault), false
		isTold := isRaw || strings.Contains(text, strings.TrimSuffix(value, "/")) || strings.Contains(text, "***") ||
			strings.Contains(text, `{"a":"b"}`) // which is how a map shows a=b
		for _, setting := range settingName.FindAllString(text, -1) {
			if name := strings.TrimPrefix(setting, "--"); slices.Contains(names, name) {
				said[name], isNamed = true, true
			}
		}
		if !isNamed || !isTold || goWords.MatchString(text) || strings.Contains(text, "hunter2") {
			t.Errorf("by %s %q: got %q, want a setting, the value, and no words of Go", source, value, text)
		}
	}
	return said
}
