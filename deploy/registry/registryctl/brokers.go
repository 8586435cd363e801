package registryctl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"asset-registry/shared/adminapi"
)

type brokerCommands struct {
	List   listBrokers  `cmd:"" help:"List brokers."`
	Get    getBroker    `cmd:"" help:"Show a broker."`
	Create createBroker `cmd:"" help:"Create a broker. Its name becomes the owner of its assets and cannot change."`
	Remove removeBroker `cmd:"" help:"Remove a broker that owns nothing and whose keys are revoked and were never used."`
	Change changeBroker `cmd:"" help:"Change a broker, block it, or unblock it."`
	Raise  raiseBroker  `cmd:"" help:"Raise the rate limits of a broker for a time."`
}

// brokerName is the argument of commands about one broker. Shells can complete it.
type brokerName struct {
	Name string `arg:"" complete:"brokers" help:"Name of the broker."`
}

func (b brokerName) path() string { return "/brokers/" + url.PathEscape(b.Name) }

type listBrokers struct {
	Search string `help:"List only brokers with this text in name, title or contact."`
}

// Run lists brokers.
func (l listBrokers) Run(ctx context.Context, p *program) error {
	found, err := gathered(all[adminapi.Broker](ctx, p, "/brokers", url.Values{"q": {l.Search}}))
	if err != nil {
		return err
	}
	return p.printBrokers(adminapi.Response[[]adminapi.Broker]{Data: found}, found...)
}

type getBroker struct {
	brokerName `embed:""`
}

// Run shows a broker.
func (g getBroker) Run(ctx context.Context, p *program) error {
	return p.oneBroker(ctx, http.MethodGet, g.path(), nil)
}

type createBroker struct {
	Name    string `arg:"" help:"Name of the broker."`
	Title   string `help:"Full name."`
	Contact string `help:"Person or address to contact."`
	Similar bool   `help:"Accept a name that looks like that of another broker."`
}

// Run creates a broker.
func (c createBroker) Run(ctx context.Context, p *program) error {
	settings := adminapi.BrokerSettings{Title: c.Title, Contact: c.Contact}
	made := adminapi.NewBroker{Name: c.Name, Similar: c.Similar, BrokerSettings: settings}
	return p.oneBroker(ctx, http.MethodPost, "/brokers", made)
}

type removeBroker struct {
	brokerName `embed:""`
}

// Run removes a broker, and prints it.
func (r removeBroker) Run(ctx context.Context, p *program) error {
	return p.oneBroker(ctx, http.MethodDelete, r.path(), struct{}{})
}

// changeBroker has a nil field for each flag that was not given.
type changeBroker struct {
	brokerName `embed:""`
	Title      *string `help:"Full name."`
	Contact    *string `help:"Person or address to contact."`
	Blocked    *bool   `help:"Refuse all keys of the broker. --blocked=false accepts them again."`
}

// Run changes the fields whose flags were given.
func (c changeBroker) Run(ctx context.Context, p *program) error {
	patch := map[string]any{}
	if c.Title != nil {
		patch["title"] = *c.Title
	}
	if c.Contact != nil {
		patch["contact"] = *c.Contact
	}
	if c.Blocked != nil {
		patch["blocked"] = *c.Blocked
	}
	if len(patch) == 0 {
		return errors.New("nothing to change: give --title, --contact or --blocked")
	}
	return p.oneBroker(ctx, http.MethodPatch, c.path(), patch)
}

type raiseBroker struct {
	brokerName `embed:""`
	Times      int64         `default:"10" least:"2" most:"100" help:"Its keys have so many times the limits: 2 to 100."`
	For        time.Duration `default:"24h" least:"1s" most:"744h" help:"For how long, at most 744h."`
	End        bool          `help:"End raised limits now."`
}

// Run raises the limits of a broker, or ends a raise.
func (r raiseBroker) Run(ctx context.Context, p *program) error {
	patch := map[string]any{"raise": r.Times, "raised_until": time.Now().Add(r.For).UTC().Truncate(time.Second)}
	if r.End {
		patch = map[string]any{"raise": nil, "raised_until": nil}
	}
	return p.oneBroker(ctx, http.MethodPatch, r.path(), patch)
}

// oneBroker makes a call whose answer is a broker, and prints the broker.
func (p *program) oneBroker(ctx context.Context, method, path string, body any) error {
	answer, err := call[adminapi.Broker](ctx, p, method, path, nil, body)
	if err != nil {
		return err
	}
	return p.printBrokers(answer, answer.Data)
}

func (p *program) printBrokers(answer any, brokers ...adminapi.Broker) error {
	header := row{"NAME", "TITLE", "CONTACT", "BLOCKED", "LIMITS", "CREATED"}
	return table(p, answer, header, brokers, func(b adminapi.Broker) row {
		raised := ""
		if b.Raise > 0 {
			raised = fmt.Sprintf("%d times until %s", b.Raise, stamp(&b.RaisedUntil))
		}
		return row{b.Name, b.Title, b.Contact, strconv.FormatBool(b.Blocked), raised, stamp(&b.Created)}
	})
}
