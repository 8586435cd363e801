package documents

import (
	"fmt"
	"net/http"

	"asset-registry/shared/assetfilter"
	"asset-registry/shared/routes"
)

// webhookOperations describes the routes of webhooks (docs/contract.md, "Webhooks").
var webhookOperations = map[string]operation{
	"GET " + routes.Webhooks: {
		id: "listWebhooks", tag: "webhooks", summary: "List webhooks",
		text: "Lists the webhooks of the key's broker, in the order of their ids. An administrator gets all, or one " +
			"broker's. A page with as many webhooks as asked for has `next_page`.",
		params: append([]string{"after", "webhookLimit", "broker"}, reading...), answer: "WebhookList",
		statuses: []int{http.StatusForbidden}, javascript: true,
	},
	"POST " + routes.Webhooks: {
		id: "createWebhook", tag: "webhooks", summary: "Create a webhook",
		text: "Changes of the feed are sent to its address, in the version of this path, once the address has answered a " +
			"challenge. Needs a key of role broker or administrator. The answer holds the secret, which is shown this once.",
		params: []string{"Idempotency-Key", "opt_pretty"}, body: "WebhookInput", answer: "WebhookCreated",
		status: http.StatusCreated, location: true, statuses: []int{http.StatusForbidden},
	},
	"GET " + routes.Webhooks + "/:webhook": {
		id: "readWebhook", tag: "webhooks", summary: "Read a webhook",
		text: "A webhook of another broker is a 404.", params: reading, answer: "WebhookAnswer",
		statuses: []int{http.StatusForbidden}, javascript: true,
	},
	"PATCH " + routes.Webhooks + "/:webhook": {
		id: "changeWebhook", tag: "webhooks", summary: "Change a webhook",
		text: "`state` disabled pauses it, active resumes it. A new `url` has to answer a challenge first. An " +
			"administrator " +
			"changes the state of any webhook, and the address of those that administrators have made.",
		params: []string{"opt_pretty"}, body: "WebhookPatch", answer: "WebhookAnswer",
		statuses: []int{http.StatusForbidden, http.StatusConflict},
	},
	"DELETE " + routes.Webhooks + "/:webhook": {
		id: "removeWebhook", tag: "webhooks", summary: "Remove a webhook", text: "Nothing is sent to it any more.",
		params: []string{"opt_pretty"}, answer: "Removed", statuses: []int{http.StatusForbidden},
	},
	"POST " + routes.Webhooks + "/:webhook/replay": {
		id: "replayWebhook", tag: "webhooks", summary: "Send changes again",
		text: "All changes after `offset` are sent again, in order. Without an offset a disabled webhook goes on where it " +
			"ended. An offset after the newest change stands for the newest change.",
		params: []string{"opt_pretty"}, body: "WebhookReplay", answer: "WebhookAnswer",
		statuses: []int{http.StatusForbidden, http.StatusConflict},
	},
	"POST " + routes.Webhooks + "/:webhook/rotate": {
		id: "rotateWebhook", tag: "webhooks", summary: "Replace the secrets of a webhook",
		text: "The answer holds the new secret, which is shown this once. For a day, messages are signed with the former " +
			"secrets too.",
		params: []string{"opt_pretty"}, body: "WebhookRotation", answer: "WebhookCreated",
		statuses: []int{http.StatusForbidden, http.StatusConflict},
	},
}

// webhookExamples has examples of bodies. Their address has a host name that never resolves (RFC 2606).
var webhookExamples = map[string]object{
	"WebhookInput":    {{"url", webhookURL}},
	"WebhookPatch":    {{"state", "disabled"}},
	"WebhookReplay":   {{"offset", timeExample}},
	"WebhookRotation": {},
}

const webhookURL = "https://broker.example/registry"

// webhookFields returns the fields of a webhook.
func webhookFields() object {
	return object{
		{"id", str("Id of the webhook.", digits(32))},
		{"dateCreated", stamp("When it was created.")},
		{"broker", str("Broker of the key that has created it.")},
		{"byAdministrator", object{
			{"type", "boolean"}, {"const", true},
			{"description", "An administrator has created it. Only administrators see it."},
		}},
		{"url", str("Address that messages are sent to.", member{"examples", []string{webhookURL}})},
		{"version", str("Version of the API that the entries of messages have.",
			member{"examples", []string{routes.Current}})},
		{"mode", str("`test`: changes of test assets; `_all_`: of all assets; empty: of real ones.",
			member{"enum", []string{"", "test", "_all_"}})},
		{"opt_fields", str("`*`: entries have whole assets; empty: id and dateModified.", member{"enum", []string{"", "*"}})},
		{"filters", reference("schemas", "WebhookFilters")},
		{"state", str("`unverified`: the address has not answered the challenge yet. `active`: changes are sent. "+
			"`disabled`: "+
			"nothing is sent.", member{"enum", []string{"unverified", "active", "disabled"}})},
		{"reason", str("Why it is disabled: its owner has paused it, an administrator has stopped it, the receiver has "+
			"answered 410, messages have failed for three days, or the challenge was not answered for a day.",
			member{"enum", []string{"paused", "stopped", "gone", "failing", "unverified"}})},
		{"offset", stamp("The receiver has acknowledged everything up to here.")},
		{"behind", integer("Age of the oldest change that is not acknowledged, in seconds. 0: there is none.",
			member{"minimum", 0})},
		{"failures", integer("Attempts that have failed since the last success.", member{"minimum", 0})},
		{"lastError", str("`failed`, and the status of an answer, for the newest attempt. Absent after a success.")},
		{"next", stamp("No attempt is made before.")},
		{"succeeded", stamp("The newest success.")},
		{"publicKey", str("Ed25519 key that verifies signatures `v1a`.", member{"pattern", "^whpk_[A-Za-z0-9+/]{43}=$"})},
	}
}

// webhookSchemas returns the schemas of webhooks.
func webhookSchemas() object {
	optional := []string{"byAdministrator", "filters", "reason", "lastError", "next", "succeeded", "publicKey"}
	secret := closed("The secret.", object{
		{"secret", str("Verifies signatures `v1`. Shown this once.", member{"pattern", "^whsec_[A-Za-z0-9+/]{43}=$"})},
	})
	page := closed("The page after this one.", object{
		{"after", str("Id of the last webhook of this page.")}, {"path", str("Path and query of the page.")},
		{"uri", str("Address of the page.")},
	})
	return object{
		{"WebhookFilters", webhookFilters()},
		{"Webhook", closed("A webhook.", webhookFields(), optional...)},
		{"WebhookAnswer", closed("A webhook.", object{{"data", reference("schemas", "Webhook")}})},
		{"WebhookCreated", closed("A webhook and its secret.", object{
			{"access", secret}, {"data", reference("schemas", "Webhook")},
		})},
		{"WebhookList", closed("Webhooks.", object{
			{"data", listOf(reference("schemas", "Webhook"))}, {"next_page", page},
		}, "next_page")},
		{"WebhookInput", webhookInput("A webhook as a client sends it to create one.", []string{"url"}, object{
			{"url", str("Address that messages are sent to: `https`, of a public host, without a user name and a password, of "+
				"at most 2,000 characters.", member{"examples", []string{webhookURL}})},
			{"mode", nullable(field("mode"))},
			{"opt_fields", nullable(field("opt_fields"))},
			{"filters", field("filters")},
			{"state", nullable(str("`disabled` creates a paused webhook. Anything else: a challenge is sent at once.",
				member{"enum", []string{"unverified", "active", "disabled"}}))},
			{"offset", nullable(str("Changes after this time are sent. Without it: those after now.",
				member{"examples", []string{timeExample}}))},
		})},
		{"WebhookPatch", webhookInput("A webhook as a client sends it to change one.", nil, object{
			{"url", nullable(str("Another address, which has to answer a challenge.",
				member{"examples", []string{webhookURL}}))},
			{"state", nullable(str("`disabled` pauses, `active` resumes. `unverified` changes nothing.",
				member{"enum", []string{"unverified", "active", "disabled"}}))},
		})},
		{"WebhookReplay", webhookInput("Where to begin again.", nil, object{
			{"offset", nullable(str("Changes after this time are sent again. Without it: those after the webhook's offset.",
				member{"examples", []string{timeExample}}))},
		})},
		{"WebhookRotation", webhookInput("Nothing is needed.", nil, nil)},
	}
}

// webhookFilters returns the schema of the filters of a webhook.
func webhookFilters() object {
	var properties object
	for _, f := range assetfilter.All {
		properties = properties.with(string(f.Name), filterValues(f).with("description", f.About))
	}
	return closed(fmt.Sprintf("Filters of the search. Entries are assets that a search with the filters finds. "+
		"An asset meets all filters, each by any of its values, which together have %d characters at most.",
		assetfilter.MaxTotal), properties, assetfilter.Names()...)
}

// messageOf returns the schema of a message to receivers. It is not a component, because generators drop
// components that no path refers to.
func messageOf(text, kind string, data object) object {
	return closed(text, object{
		{"type", object{{"type", "string"}, {"const", kind}}},
		{"timestamp", stamp("Time of the message.")},
		{"data", data},
	})
}

// webhookMessages describes the requests that the registry sends to receivers.
func webhookMessages() object {
	header := func(name, text string) object {
		return object{
			{"name", name}, {"in", "header"}, {"required", true}, {"description", text}, {"schema", object{{"type", "string"}}},
		}
	}
	message := func(id, summary, text string, schema, acknowledged object) object {
		return object{{"post", object{
			{"operationId", id}, {"tags", []string{"webhooks"}}, {"summary", summary}, {"description", text},
			{"security", []object{}},
			{"parameters", []object{
				header("webhook-id", "The same for a repeat of the same message."),
				header("webhook-timestamp", "Seconds since the epoch, of this attempt."),
				header("webhook-signature", "Signatures of `{id}.{timestamp}.{body}`, separated by spaces: `v1,` HMAC-SHA256 with "+
					"the secret, `v1a,` Ed25519, each in base64 (Standard Webhooks)."),
			}},
			{"requestBody", object{
				{"required", true}, {"content", object{{"application/json", object{{"schema", schema}}}}},
			}},
			{"responses", object{
				{"200", acknowledged},
				{"410", object{{"description", "The receiver wants no more messages: the webhook is disabled."}}},
			}},
		}}}
	}
	changes := closed("Entries of the feed, in order.", object{
		{"offset", stamp("The offset of the last entry.")},
		{"entries", object{
			{"type", "array"}, {"minItems", 1}, {"maxItems", 100}, {"items", reference("schemas", "Entry")},
		}},
	})
	challenge := closed("The receiver answers with the same object.", object{{"challenge", str("A random text.")}})
	return object{
		{"assetsChanged", message("assetsChanged", "Changes of the feed",
			"Any 2xx acknowledges the message. Other answers are failures, and the message is sent again.",
			messageOf("Changes of the feed.", "assets.changed", changes),
			object{{"description", "The receiver has stored what it needs."}})},
		{"webhookChallenge", message("webhookChallenge", "Challenge of an address",
			"The receiver answers 2xx with the text of the challenge. Before that, nothing else is sent.",
			messageOf("The first message to an address.", "webhook.challenge", challenge),
			object{
				{"description", "The text of the challenge."},
				{"content", object{{"application/json", object{{"schema", challenge}}}}},
			})},
	}
}

// field returns the schema of the webhook field with this name.
func field(name string) object {
	for _, f := range webhookFields() {
		if f.name == name {
			return f.value.(object)
		}
	}
	panic("openapi: webhooks have no field " + name) // a mistake in this file
}

// webhookTypes names the types in Go of fields that one body has and another ignores. All bodies have one type in Go.
var webhookTypes = map[string]string{
	"mode": "WebhookMode", "opt_fields": "WebhookOptFields", "filters": "WebhookFilters", "offset": "string",
}

// webhookInput returns the schema of a body. The last argument has the fields that a client may set. Other
// fields of a webhook are permitted, but the registry ignores them.
func webhookInput(text string, required []string, written object) object {
	var properties object
	for _, f := range webhookFields() {
		schema := object{}
		if of := webhookTypes[f.name]; of != "" {
			schema = schema.with(goType, of)
		}
		for _, w := range written {
			if w.name == f.name {
				schema = w.value.(object)
			}
		}
		properties = properties.with(f.name, schema)
	}
	o := object{{"type", "object"}, {"description", text + " Fields without a description are ignored."}}
	if len(required) > 0 {
		o = o.with("required", required)
	}
	return o.with("properties", properties).with("additionalProperties", false)
}
