package config

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestNoArgumentPrintsTheHelp runs a program with commands in a second process, without arguments. It must print its
// commands and end with status 0. If one of the commands is the default, this command is chosen instead.
func TestNoArgumentPrintsTheHelp(t *testing.T) {
	if os.Getenv("CONFIG_TEST_PROGRAM") != "" {
		var c struct {
			Serve struct{} `cmd:"" help:"Run it."`
		}
		_, err := Parse(&c, "example", "An example.", "EXAMPLE", nil)
		t.Fatalf("got %v from Parse, want the process to end", err)
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	program.Env = append(os.Environ(), "CONFIG_TEST_PROGRAM=1")
	if text, err := program.Output(); err != nil || !bytes.Contains(text, []byte("Run it.")) {
		t.Errorf("got %v, %s; want exit status 0 and the help", err, text)
	}
	var c struct {
		Serve struct{} `cmd:"" default:"1" help:"Run it."`
	}
	expect.Value(t, "serve", "")(Parse(&c, "example", "An example.", "EXAMPLE", nil))
}

// TestPrintSettingsEndsTheProcess uses the flag --print-settings in a second process, because the flag ends the
// process. The process must print the settings and end with status 0.
func TestPrintSettingsEndsTheProcess(t *testing.T) {
	if os.Getenv("CONFIG_TEST_PROGRAM") != "" {
		var c struct {
			Serve struct {
				Store string `required:"" help:"Where things are."`
				Level string `default:"info" enum:"info,warn" help:"Least level."`
			} `cmd:"" help:"Run it."`
		}
		_, err := Parse(&c, "example", "An example.", "EXAMPLE", []string{"serve", "--print-settings"})
		t.Fatalf("got %v from Parse, want the process to end", err)
	}
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	program.Env = append(os.Environ(), "CONFIG_TEST_PROGRAM=1")
	text, err := program.Output()
	expect.FatalIf(t, err != nil, "got %v, %s; want exit status 0", err, text)
	var got Program
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&got); err != nil {
		t.Fatalf("got %s, want JSON: %v", text, err)
	}
	want := []Setting{
		{Name: "store", Env: "EXAMPLE_STORE", Type: "string", Required: true, Help: "Where things are."},
		{Name: "level", Env: "EXAMPLE_LEVEL", Type: "string", Default: "info", Enum: "info,warn", Help: "Least level."},
	}
	at := slices.IndexFunc(got.Commands, func(c Command) bool { return c.Name == "serve" })
	expect.ErrorIf(t, got.Name != "example" || at < 0 || !slices.Equal(got.Commands[at].Settings, want),
		"got %+v, want the settings %+v of serve", got, want)
}
