package console

import (
	"net/http"
	"strings"

	"asset-registry/authsvc/internal/admin"
	"asset-registry/authsvc/internal/problems"
	"asset-registry/shared/adminapi"
)

type brokerList struct {
	Search  search
	Brokers []adminapi.Broker
}

func (c *Console) listBrokers(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	s, filter := searchOf(r)
	brokers, next, err := c.service.Brokers(r.Context(), filter)
	if err != nil {
		return err
	}
	s.Next = nextPath(r, next)
	body := brokerList{s, brokers}
	return c.show(w, http.StatusOK, "brokers", view{Title: "Brokers", Section: "brokers", By: by, Body: body})
}

// brokerPage is the body of the page of a broker: its first keys, or its form.
type brokerPage struct {
	Broker adminapi.Broker // zero for a new broker
	Keys   []adminapi.Key
	More   bool // the broker has more keys
	Form   form
}

func (c *Console) showBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	b, err := c.service.Broker(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	keys, next, err := c.service.Keys(r.Context(), admin.Filter{Broker: b.Name, Limit: listed})
	if err != nil {
		return err
	}
	return c.show(w, http.StatusOK, "broker", view{
		Title: b.Name, Section: "brokers", By: by, Notice: notices[r.URL.Query().Get("notice")],
		Body: brokerPage{Broker: b, Keys: keys, More: next != ""},
	})
}

func (c *Console) showNewBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	f, err := c.newForm(r.Context())
	if err != nil {
		return err
	}
	return c.brokerForm(w, by, f, adminapi.Broker{})
}

func (c *Console) brokerForm(w http.ResponseWriter, by admin.Actor, f form, of adminapi.Broker) error {
	title := "New broker"
	if of.Name != "" {
		title = "Edit " + of.Name
	}
	body := brokerPage{Broker: of, Form: f}
	return c.show(w, statusOf(f), "broker-form", view{Title: title, Section: "brokers", By: by, Body: body})
}

// The fields of the forms that create and change a broker.
var (
	newBrokerFields  = []string{"name", "title", "contact"}
	editBrokerFields = []string{"title", "contact", "blocked"}
)

func (c *Console) createBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	var unread problems.List
	unknown(r, newBrokerFields, &unread)
	n := adminapi.NewBroker{Name: strings.TrimSpace(r.PostForm.Get("name")), BrokerSettings: brokerSettings(r)}
	b, err := c.service.CreateBroker(r.Context(), by, n, unread.Details()...)
	if f, ok := refused(r, err, newBrokerFields); ok {
		return c.brokerForm(w, by, f, adminapi.Broker{})
	}
	if err != nil {
		return err
	}
	redirect(w, r, brokerPath(b.Name), created)
	return nil
}

func brokerSettings(r *http.Request) adminapi.BrokerSettings {
	return adminapi.BrokerSettings{
		Title:   strings.TrimSpace(r.PostForm.Get("title")),
		Contact: strings.TrimSpace(r.PostForm.Get("contact")),
		Blocked: r.PostForm.Get("blocked") != "",
	}
}

func settingsOf(b adminapi.Broker) adminapi.BrokerSettings {
	return adminapi.BrokerSettings{Title: b.Title, Contact: b.Contact, Blocked: b.Blocked}
}

func (c *Console) showEditBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	b, err := c.service.Broker(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	f, err := c.newForm(r.Context())
	if err != nil {
		return err
	}
	was, err := unchanged(settingsOf(b))
	if err != nil {
		return err
	}
	f.Values.Set("was", was)
	f.Values.Set("title", b.Title)
	f.Values.Set("contact", b.Contact)
	if b.Blocked {
		f.Values.Set("blocked", "yes")
	}
	return c.brokerForm(w, by, f, b)
}

func (c *Console) editBroker(w http.ResponseWriter, r *http.Request, by admin.Actor) error {
	b, err := c.service.Broker(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	_, err = c.service.ChangeBroker(r.Context(), by, b.Name, func(s *adminapi.BrokerSettings) error {
		if err := mustBe(*s, r.PostForm.Get("was")); err != nil {
			return err
		}
		var unread problems.List
		unknown(r, editBrokerFields, &unread)
		*s = brokerSettings(r)
		return unread.Err()
	})
	if f, ok := refused(r, err, editBrokerFields); ok {
		return c.brokerForm(w, by, f, b)
	}
	if err != nil {
		return err
	}
	redirect(w, r, brokerPath(b.Name), changed)
	return nil
}
