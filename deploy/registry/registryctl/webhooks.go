package registryctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"asset-registry.example/client"
)

type webhookCommands struct {
	List   listWebhooks  `cmd:"" help:"List your broker's webhooks, or with an administrator's key all."`
	New    newWebhook    `cmd:"" help:"Create a webhook and print its secret, which cannot be shown again."`
	Show   showWebhook   `cmd:"" help:"Show a webhook."`
	Pause  pauseWebhook  `cmd:"" help:"Send nothing to a webhook until it is resumed. Nothing is lost."`
	Resume resumeWebhook `cmd:"" help:"Go on with a paused or disabled webhook where it ended."`
	Replay replayWebhook `cmd:"" help:"Send the changes after an offset again."`
	Rotate rotateWebhook `cmd:"" help:"Give a webhook a new secret and print it. The former one signs for a day more."`
	Remove removeWebhook `cmd:"" help:"Remove a webhook."`
}

// webhookID is the argument of commands about one webhook.
type webhookID struct {
	ID string `arg:"" help:"Id of the webhook."`
}

type listWebhooks struct {
	Broker string `help:"List only webhooks of this broker. It needs an administrator's key."`
}

// Run lists webhooks.
func (l listWebhooks) Run(ctx context.Context, p *program, c keyed) error {
	found, err := gathered(c.Webhooks(ctx, l.Broker))
	if err != nil {
		return err
	}
	return p.printWebhooks(map[string]any{"data": found}, found...)
}

type newWebhook struct {
	URL    string   `arg:"" help:"Address that messages are sent to: https, of a public host."`
	Mode   string   `complete:"test,_all_" help:"'test': test assets only; '_all_': all assets. By default real ones."`
	Whole  bool     `help:"Send whole assets. By default messages have ids and times."`
	Filter []string `placeholder:"NAME=VALUE" sep:"none" help:"Send only assets that a search with this filter finds."`
	From   string   `placeholder:"OFFSET" help:"Send the changes after this offset. By default those after now."`
	Paused bool     `help:"Send nothing, not even the challenge, until it is resumed."`
}

// Run creates a webhook.
func (n newWebhook) Run(ctx context.Context, p *program, c keyed) error {
	filters, err := filtersOf(n.Filter)
	if err != nil {
		return err
	}
	s := client.WebhookSettings{URL: n.URL, Mode: n.Mode, Offset: client.Timestamp(n.From), Filters: filters}
	if n.Whole {
		s.OptFields = "*"
	}
	if n.Paused {
		s.State = disabled
	}
	return p.printNewWebhook(c.CreateWebhook(ctx, s))
}

// filtersOf parses filters that are written as NAME=VALUE.
func filtersOf(written []string) (f client.WebhookFilters, err error) {
	values := map[string][]string{}
	for _, one := range written {
		name, value, found := strings.Cut(one, "=")
		if !found {
			return f, fmt.Errorf("--filter %s: write NAME=VALUE, such as region=Одеська", one)
		}
		values[name] = append(values[name], value)
	}
	text, err := json.Marshal(values)
	if err != nil {
		return f, err
	}
	into := json.NewDecoder(bytes.NewReader(text))
	into.DisallowUnknownFields()
	if err := into.Decode(&f); err != nil {
		return f, fmt.Errorf("--filter: %w; the filters by values of a search are known", err)
	}
	return f, nil
}

// The states that a client can set.
const (
	active   = "active"
	disabled = "disabled"
)

type showWebhook struct {
	webhookID `embed:""`
}

// Run shows a webhook.
func (s showWebhook) Run(ctx context.Context, p *program, c keyed) error {
	found, err := c.Webhook(ctx, s.ID)
	if err != nil {
		return err
	}
	if p.output == asJSON {
		return p.printJSON(map[string]any{"data": found}, "  ")
	}
	return p.show(found)
}

type pauseWebhook struct {
	webhookID `embed:""`
}

// Run pauses a webhook.
func (w pauseWebhook) Run(ctx context.Context, p *program, c keyed) error {
	return w.change(ctx, p, c, client.WebhookChange{State: disabled})
}

type resumeWebhook struct {
	webhookID `embed:""`
}

// Run resumes a webhook.
func (w resumeWebhook) Run(ctx context.Context, p *program, c keyed) error {
	return w.change(ctx, p, c, client.WebhookChange{State: active})
}

// change changes a webhook and prints it.
func (w webhookID) change(ctx context.Context, p *program, c keyed, change client.WebhookChange) error {
	return p.printWebhook(c.ChangeWebhook(ctx, w.ID, change))
}

type replayWebhook struct {
	webhookID `embed:""`
	From      string `placeholder:"OFFSET" help:"Send the changes after this; else those after the webhook's offset."`
}

// Run replays a webhook.
func (r replayWebhook) Run(ctx context.Context, p *program, c keyed) error {
	return p.printWebhook(c.ReplayWebhook(ctx, r.ID, client.Timestamp(r.From)))
}

type rotateWebhook struct {
	webhookID `embed:""`
}

// Run gives a webhook new secrets.
func (r rotateWebhook) Run(ctx context.Context, p *program, c keyed) error {
	return p.printNewWebhook(c.RotateWebhook(ctx, r.ID))
}

type removeWebhook struct {
	webhookID `embed:""`
}

// Run removes a webhook.
func (r removeWebhook) Run(ctx context.Context, p *program, c keyed) error {
	if err := c.RemoveWebhook(ctx, r.ID); err != nil {
		return err
	}
	if p.output == asJSON {
		return p.printJSON(map[string]any{"data": nil}, "  ")
	}
	return p.note("The webhook %s is removed.", plain(r.ID))
}

// printNewWebhook prints a webhook and its secret.
func (p *program) printNewWebhook(made client.NewWebhook, err error) error {
	if err != nil {
		return err
	}
	const text = "The secret, which cannot be shown again:\n\n  %s\n"
	if err := p.note(text, plain(string(made.Access.Secret))); err != nil {
		return err
	}
	return p.printWebhooks(made, made.Webhook)
}

func (p *program) printWebhook(w client.Webhook, err error) error {
	if err != nil {
		return err
	}
	return p.printWebhooks(map[string]any{"data": w}, w)
}

func (p *program) printWebhooks(answer any, all ...client.Webhook) error {
	header := row{"ID", "BROKER", "STATE", "BEHIND", "FAILURES", "LAST ERROR", "OFFSET", "URL"}
	return table(p, answer, header, all, func(w client.Webhook) row {
		state := w.State
		if w.Reason != "" {
			state += ": " + w.Reason
		}
		behind := (time.Duration(w.Behind) * time.Second).String()
		return row{
			w.ID, w.Broker, state, behind, strconv.FormatInt(w.Failures, 10), w.LastError, string(w.Offset), w.URL,
		}
	})
}
