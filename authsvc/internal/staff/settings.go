// Package staff signs the operator's staff in by OpenID Connect (docs/staff.md). A person is the subject that the
// provider names; the claims of the ID token give a role. It keeps nothing: package console keeps the sessions.
package staff

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"asset-registry/authsvc/internal/apikey"
	"asset-registry/shared/errs"
	"asset-registry/shared/identity"
)

// Settings name the provider, the console at the provider, and the roles of people. The zero value means that nobody
// signs in by OpenID Connect.
type Settings struct {
	Issuer string `placeholder:"URL" help:"OpenID Connect issuer for sign-ins to the console."`
	Name   string `help:"Its name for people; by default its host."`
	Client string `placeholder:"ID" help:"Client id of the console."`

	// Without a file, the console is a public client.
	SecretFile string `placeholder:"FILE" help:"File with the client's secret."`

	// The provider sends people back to this address with the path BackPath.
	Console string `placeholder:"URL" help:"Public address of the console."`

	// The first rule that fits gives the role.
	Roles []string `placeholder:"CLAIM=VALUE:ROLE" help:"Such as groups=registry:operator, sub=4711:auditor."`

	Scopes []string `help:"More scopes, such as offline_access."`
}

// BackPath is the path to which the provider sends people back.
const BackPath = "/console/sign-in/back"

// rule gives a role to people whose claim has a value.
type rule struct {
	claim, value string
	role         identity.Role
}

// fickle are claims that a person can change, or that a provider gives to somebody else later.
var fickle = []string{"email", "name", "nickname", "preferred_username", "upn", "unique_name"}

func (s Settings) rules() (all []rule, err error) {
	for _, text := range s.Roles {
		claim, rest, _ := strings.Cut(text, "=")
		at := max(strings.LastIndex(rest, ":"), 0)
		r := rule{claim, rest[:at], identity.Role(strings.TrimPrefix(rest[at:], ":"))}
		switch {
		case claim == "" || r.value == "" || !apikey.Administers(r.role):
			err = errors.Join(err, fmt.Errorf("--oidc-roles: %q is not CLAIM=VALUE:ROLE with the role %s or %s",
				text, apikey.Operator, apikey.Auditor))
		case slices.Contains(fickle, claim):
			err = errors.Join(err, fmt.Errorf(
				"--oidc-roles: the claim %s may change or pass to another person: write sub or a group", claim))
		}
		all = append(all, r)
	}
	return all, err
}

// role returns the role that the claims give, or "".
func role(rules []rule, claims map[string]json.RawMessage) identity.Role {
	for _, r := range rules {
		var one string
		var several []string
		if json.Unmarshal(claims[r.claim], &one) == nil && one == r.value ||
			json.Unmarshal(claims[r.claim], &several) == nil && slices.Contains(several, r.value) {
			return r.role
		}
	}
	return ""
}

// Check returns everything that is wrong with the settings. Package config has checked the forms of addresses.
func (s Settings) Check() error {
	_, badRoles := s.rules()
	_, badSecret := s.secret()
	all := errors.Join(badRoles, errs.In(badSecret, "--oidc-secret-file"))
	for _, needed := range []struct{ name, value string }{
		{"client", s.Client}, {"console", s.Console}, {"roles", strings.Join(s.Roles, ",")},
	} {
		all = errors.Join(all,
			errs.If(s.Issuer != "" && needed.value == "", "--oidc-issuer needs --oidc-%s", needed.name),
			errs.If(s.Issuer == "" && needed.value != "", "--oidc-%s needs --oidc-issuer, got %q", needed.name, needed.value))
	}
	return all
}

// secret returns the client's secret, or "" for a public client.
func (s Settings) secret() (string, error) {
	if s.SecretFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(s.SecretFile)
	secret := strings.TrimSpace(string(text))
	return secret, errors.Join(err, errs.If(err == nil && secret == "", "the file is empty"))
}

// name returns the name of the provider for people.
func (s Settings) name() string {
	if s.Name != "" {
		return s.Name
	}
	u, _ := url.Parse(s.Issuer) // Check has parsed it
	return u.Hostname()
}
