package config

import (
	"errors"
	"io"
	"strings"
	"testing"

	"asset-registry/shared/command"
	"asset-registry/shared/testing/expect"
)

// served has settings whose names have a form.
type served struct {
	Addr        string `default:"127.0.0.1:0"`
	AdminAddr   string
	Memory      int64
	AssetTypes  []string `default:"bounce"`
	CORSOrigins []string `name:"cors-origins" default:"*"`
	Store       string

	warned []string
}

// Check has two faults that depend on several settings.
func (s *served) Check(io.Writer) error {
	if s.Store == "" || s.AdminAddr == "" {
		return nil
	}
	return errors.Join(errors.New("--store excludes --admin-addr"), errors.New("--store: no server"))
}

func (s *served) Warn(warnings []string) { s.warned = warnings }

func TestAWarningDoesNotStopAStart(t *testing.T) {
	for text, says := range map[string]string{
		"admin-addr: 0.0.0.0:8079": "0.0.0.0", "admin-addr: ':8079'": "every address",
		"admin-addr: '[::]:8079'": "every address",
		"asset-types: []":         "the list is empty", "cors-origins: [https://a.example/]": "without a slash",
		"memory: 512": "512 bytes are too few", "admin-addr: 127.0.0.1:8079": "", "cors-origins: https://a.example": "",
		"memory: 0": "", "memory: 16777216": "",
	} {
		var got served
		err := parseInto(t, &got, text)
		said := strings.Join(got.warned, "\n")
		expect.ErrorIf(t, err != nil || (said == "") != (says == "") || !strings.Contains(said, says),
			"%s: got %v and the warnings %q, want no error and %q", text, err, got.warned, says)
	}
}

// TestOnePortIsNamedOnce gives two listeners ports that clash, and ports that do not. A clash is a wrong setting,
// because the process would tell of another program.
func TestOnePortIsNamedOnce(t *testing.T) {
	for _, c := range []struct {
		addr, admin string
		clash       bool
	}{
		{"127.0.0.1:9", "127.0.0.1:9", true}, {":9", "127.0.0.1:9", true}, {"registry:9", ":9", true},
		{"0.0.0.0:9", "127.0.0.1:9", true}, {"[::1]:9", "[::]:9", true}, {"registry:9", "registry:9", true},
		{"127.0.0.1:9", "127.0.0.1:8", false}, {"127.0.0.1:9", "127.0.0.2:9", false}, {"0.0.0.0:9", "[::1]:9", false},
		{":0", ":0", false}, {":9", "", false},
	} {
		_, err := Parse(&served{}, "example", "", "EXAMPLE", []string{"--addr=" + c.addr, "--admin-addr=" + c.admin})
		expect.ErrorIf(t, (err != nil) != c.clash || c.clash && !strings.Contains(err.Error(), "name the same port"),
			"%s and %s: got %v, want a clash: %t", c.addr, c.admin, err, c.clash)
	}
}

func TestASignInHasTLS(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "https://login.example/realms/a": true, "http://127.0.0.1:1": true, "http://localhost/": true, "http://[::1]:1": true,
		"http://login.example": false, "http://10.0.0.1": false, "https://a:b@login.example": false, "https://login.example?a": false,
		"login.example": false, "https://": false, "://": false,
	} {
		expect.Equal(t, isSecure(text), want, "%s", text)
	}
}

// TestAllFaultsAreToldWithTheirSources sets several wrong values in each source. The error must have each with its
// name, value and source, and no password. Valid settings keep their values.
func TestAllFaultsAreToldWithTheirSources(t *testing.T) {
	t.Setenv("EXAMPLE_MEMORY", "-5")
	t.Setenv("EXAMPLE_ADMIN_ADDR", "127.0.0.1:8079")
	t.Setenv("EXAMPLE_ADDR", "hidden by the flag")
	var got served
	_, err := Parse(&got, "example", "", "EXAMPLE", []string{
		"--adr", "x", "--colour=blue", "--asset-types=,", "--store=redis://:hunter2", "--addr=127.0.0.1:1",
	})
	expect.ErrorIf(t, !errors.Is(err, command.ErrSettings), "got %v, want it to be command.ErrSettings", err)
	want := strings.Join([]string{
		"unknown flag --adr, did you mean \"--addr\"?",
		"unknown flag --colour",
		"--asset-types: want a text, got \"\"",
		"--memory: want a whole number of 0 or more, got \"-5\" (from the environment, EXAMPLE_MEMORY)",
		"--store excludes --admin-addr (--admin-addr is \"127.0.0.1:8079\", environment, EXAMPLE_ADMIN_ADDR) " +
			"(--store is \"redis://***\", flag)",
		"--store: no server (--store is \"redis://***\", flag)",
	}, "; ")
	if said := command.Words(err); said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	expect.ErrorIf(t, got.Addr != "127.0.0.1:1" || got.Memory != 0 || len(got.AssetTypes) != 1,
		"got %+v, want the valid values, and defaults for the others", got)
	_, err = Parse(&struct {
		Backup struct{ To string } `cmd:""`
	}{}, "example", "", "EXAMPLE", []string{"backup", "--colour"})
	expect.ErrorIf(t, err == nil || errors.Is(err, command.ErrSettings),
		"another command: got %v, want an error that is not command.ErrSettings", err)
}
