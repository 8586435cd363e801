package registryctl

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"asset-registry/shared/adminapi"
)

func (p *program) keys() *cobra.Command {
	group := newGroup("keys", "API keys")

	var broker, state, search string
	list := &cobra.Command{Use: "list", Short: "List keys", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		found := []adminapi.Key{}
		if err := all(cmd.Context(), p, "/keys", url.Values{"broker": {broker}, "state": {state}, "q": {search}}, func(page []adminapi.Key) { found = append(found, page...) }); err != nil {
			return err
		}
		return p.printKeys(adminapi.Response[[]adminapi.Key]{Data: found}, found...)
	}}
	list.Flags().StringVar(&broker, "broker", "", "only those of this broker")
	list.Flags().StringVar(&state, "state", "", "only those that are active, expired, revoked or blocked")
	list.Flags().StringVar(&search, "search", "", "only those with this text in id, name or broker")

	get := p.keyCommand("get ID", "Show a key with all its secrets' last uses", func(cmd *cobra.Command, id string) error {
		return p.oneKey(cmd, http.MethodGet, "/keys/"+id, nil)
	})
	revoke := p.keyCommand("revoke ID", "End a key, at once and for good", func(cmd *cobra.Command, id string) error {
		return p.oneKey(cmd, http.MethodPost, "/keys/"+id+"/revoke", struct{}{})
	})
	var grace time.Duration
	rotate := p.keyCommand("rotate ID", "Give a key a new secret, and print it, this once", func(cmd *cobra.Command, id string) error {
		return p.oneKey(cmd, http.MethodPost, "/keys/"+id+"/rotate", adminapi.Rotation{Grace: grace.String()})
	})
	rotate.Flags().DurationVar(&grace, "grace", 0, "how long the secret before stays good, such as 24h (default: no longer)")
	var days int
	usage := p.keyCommand("usage ID", "How often a key was used, by day and class of request", func(cmd *cobra.Command, id string) error {
		answer, err := call[[]adminapi.Day](cmd.Context(), p, http.MethodGet, "/keys/"+id+"/usage", url.Values{"days": {strconv.Itoa(days)}}, nil)
		if err != nil {
			return err
		}
		var rows []row
		for _, d := range answer.Data {
			rows = append(rows, row{d.Day, fmt.Sprint(d.Counts["list"]), fmt.Sprint(d.Counts["read"]), fmt.Sprint(d.Counts["write"])})
		}
		return p.print(answer, row{"DAY", "LIST", "READ", "WRITE"}, rows...)
	})
	usage.Flags().IntVar(&days, "days", 30, "the last so many days")

	var made keyFlags
	var of string
	create := &cobra.Command{Use: "create", Short: "Make a key, and print its secret, this once", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		question, err := made.question(cmd)
		if err != nil {
			return err
		}
		question["broker"] = of
		return p.oneKey(cmd, http.MethodPost, "/keys", question)
	}}
	made.declare(create)
	create.Flags().StringVar(&of, "broker", "", "whose key it is; none for an operator or auditor")
	var changed keyFlags
	change := p.keyCommand("change ID", "Change what is said of a key", func(cmd *cobra.Command, id string) error {
		question, err := changed.question(cmd)
		if err != nil {
			return err
		}
		return p.oneKey(cmd, http.MethodPatch, "/keys/"+id, question)
	})
	changed.declare(change)

	group.AddCommand(list, get, create, change, rotate, revoke, usage)
	return group
}

// keyCommand is a command about one key, whose id the shell can complete.
func (p *program) keyCommand(use, short string, run func(cmd *cobra.Command, id string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, url.PathEscape(args[0])) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var ids []cobra.Completion
			if len(args) == 0 && p.load() == nil {
				_ = all(cmd.Context(), p, "/keys", url.Values{}, func(page []adminapi.Key) { // a shell has no use for an error
					for _, k := range page {
						ids = append(ids, cobra.CompletionWithDesc(k.ID, plain(k.Broker+" "+k.Name)))
					}
				})
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// keyFlags are what may be said of a key.
type keyFlags struct {
	name, role, levels, expires string
	test                        bool
	limits, allow               []string
}

func (f *keyFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "what the key is for")
	flags.StringVar(&f.role, "role", "broker", "broker, concierge or administrator; operator or auditor of the admin API")
	flags.StringVar(&f.levels, "levels", "1234", "accreditation levels, of 1, 2, 3, 4, and 0 for all (for a broker)")
	flags.StringVar(&f.expires, "expires", "", "when the key ends: a time (2027-01-31T00:00:00Z), a length of time from now (720h), or never")
	flags.BoolVar(&f.test, "test", false, "for test assets only")
	flags.StringArrayVar(&f.limits, "limit", nil, "requests of a class in a window, such as write:1m=100; may be repeated; none: no limit of its own")
	flags.StringArrayVar(&f.allow, "allow", nil, "address or network that the key may be used from, may be repeated; any: all")
}

// question is what was said of the key, and for a new one the defaults.
func (f *keyFlags) question(cmd *cobra.Command) (map[string]any, error) {
	q := map[string]any{}
	said := cmd.Flags().Changed
	isNew := cmd.Name() == "create"
	if isNew || said("name") {
		q["name"] = f.name
	}
	if isNew || said("role") {
		q["role"] = f.role
	}
	if said("levels") || isNew && f.role == "broker" {
		q["levels"] = f.levels
	}
	if said("test") {
		q["test"] = f.test
	}
	if said("allow") {
		q["allow"] = f.allow
		if len(f.allow) == 1 && f.allow[0] == "any" {
			q["allow"] = nil
		}
	}
	if said("expires") {
		end, err := parseEnd(f.expires)
		if err != nil {
			return nil, err
		}
		q["expires"] = end
	}
	if said("limit") {
		limits, err := parseLimits(f.limits)
		if err != nil {
			return nil, err
		}
		q["limits"] = limits
	}
	return q, nil
}

func parseEnd(text string) (any, error) {
	if text == "never" {
		return nil, nil
	}
	if length, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(length).UTC().Truncate(time.Second), nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fmt.Errorf("--expires %q is no time such as 2027-01-31T00:00:00Z, no length of time such as 720h, and not never", text)
	}
	return end.UTC(), nil
}

func parseLimits(texts []string) (map[string]map[string]int64, error) {
	limits := map[string]map[string]int64{}
	for _, text := range texts {
		if text == "none" {
			continue
		}
		class, rest, _ := strings.Cut(text, ":")
		window, number, _ := strings.Cut(rest, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || window == "" {
			return nil, fmt.Errorf("--limit %q has not the form CLASS:WINDOW=REQUESTS, such as write:1m=100", text)
		}
		if limits[class] == nil {
			limits[class] = map[string]int64{}
		}
		limits[class][window] = n
	}
	return limits, nil
}

func (p *program) oneKey(cmd *cobra.Command, method, path string, question any) error {
	answer, err := call[adminapi.Key](cmd.Context(), p, method, path, nil, question)
	if err != nil {
		return err
	}
	if answer.Secret != "" {
		if err := p.note("The secret, which is shown this once:\n\n  %s\n", answer.Secret); err != nil {
			return err
		}
	}
	if err := p.printKeys(answer, answer.Data); err != nil || p.output == asJSON || len(answer.Data.Secrets) == 1 && len(answer.Data.Secrets[0].Uses) == 0 {
		return err
	}
	var rows []row
	for _, s := range answer.Data.Secrets {
		head := row{fmt.Sprint(s.Number), s.Fingerprint, stamp(&s.Created), stamp(s.Until)}
		if len(s.Uses) == 0 {
			rows = append(rows, append(head, "", ""))
		}
		for _, use := range s.Uses {
			rows = append(rows, append(head[:4:4], stamp(&use.Time), use.From))
			head = row{" ", " ", " ", " "}
		}
	}
	if err := p.note(""); err != nil {
		return err
	}
	return p.print(nil, row{"SECRET", "FINGERPRINT", "CREATED", "GOOD UNTIL", "LAST USED", "FROM"}, rows...)
}

func (p *program) printKeys(answer any, keys ...adminapi.Key) error {
	var rows []row
	for _, k := range keys {
		levels := k.Levels
		if k.Test {
			levels += " test"
		}
		var last adminapi.Use
		for _, s := range k.Secrets {
			if len(s.Uses) > 0 && s.Uses[0].Time.After(last.Time) {
				last = s.Uses[0]
			}
		}
		rows = append(rows, row{k.ID, k.Broker, k.Name, k.Role, levels, k.State, stamp(k.Expires), stamp(&last.Time), last.From})
	}
	return p.print(answer, row{"ID", "BROKER", "NAME", "ROLE", "LEVELS", "STATE", "EXPIRES", "LAST USED", "FROM"}, rows...)
}
