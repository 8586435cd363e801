package registryctl

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"asset-registry/shared/adminapi"
)

func (p *program) brokers() *cobra.Command {
	group := newGroup("brokers", "Tenants of the registry, each with any number of keys")

	var search string
	list := &cobra.Command{Use: "list", Short: "List brokers", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		found := []adminapi.Broker{}
		if err := all(cmd.Context(), p, "/brokers", url.Values{"q": {search}}, func(page []adminapi.Broker) { found = append(found, page...) }); err != nil {
			return err
		}
		return p.printBrokers(adminapi.Response[[]adminapi.Broker]{Data: found}, found...)
	}}
	list.Flags().StringVar(&search, "search", "", "only those with this text in name, title or contact")

	get := &cobra.Command{Use: "get NAME", Short: "Show a broker", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		return p.oneBroker(cmd, http.MethodGet, "/brokers/"+url.PathEscape(args[0]), nil)
	}}

	var settings adminapi.BrokerSettings
	create := &cobra.Command{Use: "create NAME", Short: "Make a broker; assets will have the name as their owner", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		return p.oneBroker(cmd, http.MethodPost, "/brokers", adminapi.NewBroker{Name: args[0], BrokerSettings: settings})
	}}
	change := &cobra.Command{Use: "change NAME", Short: "Change what is said of a broker, or block it with all its keys", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		patch := map[string]any{}
		for name, value := range map[string]any{"title": settings.Title, "contact": settings.Contact, "blocked": settings.Blocked} {
			if cmd.Flags().Changed(name) {
				patch[name] = value
			}
		}
		return p.oneBroker(cmd, http.MethodPatch, "/brokers/"+url.PathEscape(args[0]), patch)
	}}
	for _, cmd := range []*cobra.Command{create, change} {
		cmd.Flags().StringVar(&settings.Title, "title", "", "full name")
		cmd.Flags().StringVar(&settings.Contact, "contact", "", "whom to ask")
	}
	change.Flags().BoolVar(&settings.Blocked, "blocked", false, "none of its keys is good while it is blocked (--blocked=false: they are again)")

	group.AddCommand(list, get, create, change)
	return group
}

func (p *program) oneBroker(cmd *cobra.Command, method, path string, question any) error {
	answer, err := call[adminapi.Broker](cmd.Context(), p, method, path, nil, question)
	if err != nil {
		return err
	}
	return p.printBrokers(answer, answer.Data)
}

func (p *program) printBrokers(answer any, brokers ...adminapi.Broker) error {
	var rows []row
	for _, b := range brokers {
		rows = append(rows, row{b.Name, b.Title, b.Contact, strconv.FormatBool(b.Blocked), stamp(&b.Created)})
	}
	return p.print(answer, row{"NAME", "TITLE", "CONTACT", "BLOCKED", "CREATED"}, rows...)
}
