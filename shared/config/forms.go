package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"asset-registry/shared/command"
)

// form says which texts some settings accept, or of which texts an operator is warned.
type form struct {
	names string // names of settings
	valid func(text string) bool
	says  string // what to write; for a warning, what the text means
}

// forms are the forms of texts, and of the elements of lists. A text that no row names is accepted.
var forms = []form{
	{"addr admin-addr metrics-addr acme-addr plain-addr", isAddress,
		"an address such as 127.0.0.1:8080, or :8080 for all addresses of the machine"},
	{"base-url origin", isWeb,
		"an address such as https://registry.example, without a query"},
	{"auth-url assets-url files-url search-url", isServer, "addresses such as http://10.0.0.5:8081, without a path"},
	{"oidc-issuer", isSecure, "an address such as https://login.example, or http://127.0.0.1:9998"},
	{"oidc-console", func(text string) bool { return text == "" || isSecure(text) && isServer(text) },
		"an address such as https://console.example, without a path"},
	{"server-id", regexp.MustCompile(`^[0-9A-Za-z_-]*$`).MatchString, "letters, digits, - and _"},
	{"zone", func(text string) bool { _, err := Zone(text); return err == nil }, "an offset such as +02:00"},
	{"asset-types store secret-file data", func(text string) bool { return text != "" }, "a text"},
}

// doubtful are the forms of which a text departs by mistake, while a process can start with it.
var doubtful = []form{
	{"admin-addr", isNarrow, "every address of this machine answers the admin API: name one that only operators reach"},
	{"base-url origin auth-url assets-url files-url search-url", hasPort, "no server has this port: write 1 to 65535"},
	{"cors-origins", isOrigin, "no web page has this origin: write one such as https://site.example, without a slash"},
}

// The least memory with which a process can start, and that of which an operator is not warned.
const (
	leastBytes = 16
	fewBytes   = 16 << 20
)

// isAddress reports whether a process may listen on the address. Its host may be a network (authsvc).
func isAddress(text string) bool {
	name, port, err := net.SplitHostPort(text)
	if err != nil {
		return text == ""
	}
	_, noPort := net.LookupPort("tcp", port)
	_, noNetwork := netip.ParsePrefix(name)
	_, noIP := netip.ParseAddr(name)
	return noPort == nil && (name == "" || noNetwork == nil || noIP == nil || hostName.MatchString(name))
}

// hostName matches names, and no numbers such as 9.9.9.
var hostName = regexp.MustCompile(`^[\d.]*[\pL_-][\pL\d._-]*$`)

// sharedPorts returns a fault for each setting that names the port of another one at the same address.
func sharedPorts(flags []*kong.Flag) (faults []error) {
	isOn := slices.ContainsFunc(flags, func(f *kong.Flag) bool { return f.Name == "acme" && f.Target.Bool() })
	listens := func(f *kong.Flag) bool {
		return slices.Contains(strings.Fields(forms[0].names), f.Name) && (f.Name != "acme-addr" || isOn)
	}
	for i, flag := range flags {
		for _, other := range flags[:i] {
			if listens(flag) && listens(other) && meet(flag.Target.String(), other.Target.String()) {
				const says = "--%s and --%s name the same port: write another one"
				faults = append(faults, fmt.Errorf(says, flag.Name, other.Name))
			}
		}
	}
	return faults
}

// meet reports whether only one of two listeners can have its address.
func meet(one, other string) bool {
	a, port, err := net.SplitHostPort(one)
	b, second, failed := net.SplitHostPort(other)
	isSameFamily := strings.Contains(a, ":") == strings.Contains(b, ":")
	isEvery := a == "" || b == "" || isSameFamily && !(isNarrow(one) && isNarrow(other))
	return err == nil && failed == nil && port == second && port != "0" && (a == b || isEvery)
}

// isNarrow reports whether an address is one of several that the machine may have.
func isNarrow(text string) bool {
	name, _, err := net.SplitHostPort(text)
	ip, noIP := netip.ParseAddr(name)
	return err != nil || name != "" && (noIP != nil || !ip.IsUnspecified())
}

func isWeb(text string) bool {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return text == ""
	}
	return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.RawQuery == "" && u.Fragment == ""
}

func hasPort(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return true
	}
	_, err = net.LookupPort("tcp", u.Port())
	return err == nil
}

func isServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && isWeb(text) && strings.Trim(u.Path, "/") == "" && u.User == nil
}

// isSecure reports whether an address has TLS, or is on this machine.
func isSecure(text string) bool {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return text == ""
	}
	ip, noIP := netip.ParseAddr(u.Hostname())
	return isWeb(text) && u.User == nil &&
		(u.Scheme == "https" || u.Hostname() == "localhost" || noIP == nil && ip.IsLoopback())
}

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return text == "*" || err == nil && isServer(text) && u.Path == ""
}

// check returns what is wrong with the value that a setting gets, or else of what the operator is warned.
func check(flag *kong.Flag, value reflect.Value) (warning string, err error) {
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	switch v := value.Interface().(type) {
	case time.Duration:
		if v < 0 {
			return "", wanted(flag, "a duration of 0s or more", v.String())
		}
	case string:
		return checkText(flag, v)
	case []string:
		if len(v) == 0 && flag.HasDefault {
			warning = fmt.Sprintf("the list is empty: remove the setting for the default, which is %s", flag.Default)
		}
		for _, text := range v {
			doubt, err := checkText(flag, text)
			if err != nil {
				return "", err
			}
			warning = cmp.Or(doubt, warning)
		}
		return warning, nil
	}
	if !value.CanInt() || value.Type() == reflect.TypeFor[slog.Level]() {
		return "", nil
	}
	n := value.Int()
	isMemory := flag.Name == "memory" && n > 0
	switch {
	case isMemory && n < leastBytes:
		return "", wanted(flag, "a number of bytes, such as 536870912, or 0", fmt.Sprint(n))
	case n < 0:
		return "", wanted(flag, "a whole number of 0 or more", fmt.Sprint(n))
	case isMemory && n < fewBytes:
		return fmt.Sprintf("%d bytes are too few for most requests: write a number of bytes, such as 536870912", n), nil
	}
	return "", nil
}

// checkText is the function check for a text, or for one element of a list.
func checkText(flag *kong.Flag, text string) (warning string, err error) {
	if flag.Enum != "" && !slices.Contains(flag.EnumSlice(), text) {
		return "", wanted(flag, "one of "+flag.Enum, text)
	}
	if strings.Contains(flag.PlaceHolder, "FILE") || strings.HasSuffix(flag.Name, "-file") {
		return "", command.File(text)
	}
	isIn := func(f form) bool { return slices.Contains(strings.Fields(f.names), flag.Name) && !f.valid(text) }
	if at := slices.IndexFunc(forms, isIn); at >= 0 {
		return "", wanted(flag, forms[at].says, text)
	}
	if at := slices.IndexFunc(doubtful, isIn); at >= 0 {
		return fmt.Sprintf("%q: %s", text, doubtful[at].says), nil
	}
	return "", nil
}

// wanted returns the error for a text that a setting does not take.
func wanted(flag *kong.Flag, want, text string) error {
	return fmt.Errorf("want %s, got %q", want, shown(flag, text))
}

// shown returns a value without passwords. A malformed address may have them anywhere behind its scheme.
func shown(flag *kong.Flag, text string) string {
	scheme, _, isAddress := strings.Cut(text, "://")
	switch at := strings.LastIndex(text, "@"); {
	case secretName.MatchString(flag.Name), !isAddress && (flag.Name == "store" || flag.Name == "limits-redis"):
		text = "***"
	case flag.Name == "store", flag.Name == "limits-redis":
		text = scheme + "://***"
	case at >= 0 && isAddress:
		text = scheme + "://***" + text[at:]
	}
	return parameter.ReplaceAllString(text, "${1}***")
}
