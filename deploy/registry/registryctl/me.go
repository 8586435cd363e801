package registryctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"asset-registry.example/client"
	"asset-registry/shared/buildinfo"
)

type showMe struct{}

// Run shows the caller and its rate limits.
func (showMe) Run(ctx context.Context, p *program, c keyed) error {
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	all := struct {
		Data client.Me `json:"data"`
	}{me}
	who := row{me.Broker, me.Key, me.Role, me.Accreditations}
	if err := p.print(all, row{"BROKER", "KEY", "ROLE", "LEVELS"}, who); err != nil || p.output == asJSON {
		return err
	}
	if len(me.Limits) == 0 {
		return nil
	}
	if err := p.note(""); err != nil {
		return err
	}
	return table(p, nil, row{"LIMIT", "BY", "ALLOWS", "LEFT", "MORE IN"}, me.Limits, func(l client.Limit) row {
		return row{
			l.Policy, l.By, fmt.Sprintf("%d in %d s", l.Limit, l.Window), strconv.FormatInt(l.Remaining, 10),
			fmt.Sprintf("%d s", l.Reset),
		}
	})
}

type showVersion struct{}

// Run prints the version of this program, then the version of the registry.
func (showVersion) Run(ctx context.Context, p *program) error {
	build := buildinfo.Read()
	if err := p.note("registryctl %s", build); err != nil {
		return err
	}
	c, err := p.public(false)
	if err != nil {
		return err
	}
	server, err := c.Server(ctx)
	if err != nil {
		return err
	}
	if p.output == asJSON {
		return p.printJSON(struct {
			Client buildinfo.Info `json:"client"`
			Server client.Server  `json:"server"`
		}{build, server}, "  ")
	}
	return p.note("%s at %s, versions %s of the API", plain(server.Name), plain(p.URL),
		plain(strings.Join(server.Versions, ", ")))
}
