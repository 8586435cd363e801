package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"asset-registry.example/client"
)

// exampleRegistry starts a small server with fixed answers, so the examples run
// anywhere. In your program, use the address of your registry.
func exampleRegistry() *httptest.Server {
	mux := http.NewServeMux()
	answer := func(pattern string, status int, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"1763640000123456-2.5"`)
			w.WriteHeader(status)
			io.WriteString(w, body)
		})
	}
	answer("POST /api/2.5/assets", 201, `{"data":{"id":"8f6a","status":"draft"},"access":{"token":"o1","transfer":"t1"}}`)
	answer("GET /api/2.5/assets/8f6a", 200, `{"data":{"id":"8f6a","title":"Warehouse","items":[{"quantity":240.5}]}}`)
	answer("PATCH /api/2.5/assets/8f6a", 200, `{"data":{"id":"8f6a","status":"pending","title":"Warehouse, 240 m²"}}`)
	answer("POST /api/2.5/transfers", 201, `{"data":{"id":"77aa"},"access":{"token":"o2","transfer":"t2"}}`)
	answer("POST /api/2.5/assets/8f6a/ownership", 200, `{"data":{"id":"8f6a","owner":"broker3"}}`)
	answer("GET /api/2.5/assets/none", 404,
		`{"status":"error","errors":[{"location":"url","name":"asset_id","description":"Not Found"}]}`)
	mux.HandleFunc("GET /api/2.5/assets", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("offset") == "" {
			io.WriteString(w, `{"data":[{"id":"8f6a"},{"id":"91bc"}],"next_page":{"offset":"2026-11-22T00:32:46.881553+00:00"}}`)
			return
		}
		io.WriteString(w, `{"data":[],"next_page":{"offset":"2026-11-22T00:32:46.881553+00:00"}}`)
	})
	return httptest.NewServer(mux)
}

// exampleClient returns a client of a new server, and a function that stops the
// server.
func exampleClient() (*client.Client, func()) {
	server := exampleRegistry()
	registry, err := client.New(client.Config{URL: server.URL, Key: "broker"})
	if err != nil {
		panic(err)
	}
	return registry, server.Close
}

// Create an asset, then change and publish it.
func Example() {
	ctx := context.Background()
	registry, stop := exampleClient()
	defer stop()

	created, err := registry.Create(ctx, client.Asset{
		AssetType:   "bounce",
		Title:       "Warehouse",
		Description: "First floor",
		Items: []client.Item{{
			Description:         "Rooms",
			Classification:      client.Classification{Scheme: "CAV-PS", ID: "04121000-2", Description: "Rooms"},
			Unit:                client.Unit{Code: "MTK"},
			Quantity:            "240.5",
			Address:             client.Address{CountryName: "Україна"},
			RegistrationDetails: client.RegistrationDetails{Status: "unknown"},
		}},
		Decisions: []client.Decision{{DecisionDate: client.At(time.Now()), DecisionID: "1637-10"}},
		AssetCustodian: client.Organisation{
			Name:         "Fund",
			Identifier:   client.Identifier{Scheme: "UA-EDR", ID: client.Text("00032945")},
			Address:      client.Address{CountryName: "Україна"},
			ContactPoint: client.Contact{Name: "Registrar", Telephone: "+380440000000"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Store created.Access: the registry shows the tokens only once.
	owner := client.Write{Token: created.Access.Token, IfMatch: created.Asset.Tag}
	asset, err := registry.Patch(ctx, created.Asset.ID,
		client.Fields{"title": "Warehouse, 240 m²", "title_en": nil, "status": client.Pending}, owner)
	fmt.Println(asset.Title, asset.Status, created.Access.Token, err)
	// Output: Warehouse, 240 m² pending [secret] <nil>
}

func ExampleClient_Get() {
	registry, stop := exampleClient()
	defer stop()
	asset, err := registry.Get(context.Background(), "8f6a")
	if err != nil {
		fmt.Println(err)
		return
	}
	exact, _ := asset.Items[0].Quantity.Rat()
	fmt.Println(asset.Title, asset.Items[0].Quantity, exact, asset.Tag)
	// Output: Warehouse 240.5 481/2 "1763640000123456-2.5"
}

// The new owner creates a transfer and stores its tokens. Then it takes the asset over
// with the transfer token of the old owner.
func ExampleClient_TakeOver() {
	ctx := context.Background()
	registry, stop := exampleClient()
	defer stop()
	made, err := registry.CreateTransfer(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	asset, err := registry.TakeOver(ctx, "8f6a", made.Transfer.ID, "t1")
	fmt.Println(asset.Owner, err)
	// Output: broker3 <nil>
}

// Follow the feed, and keep the position after each page.
func ExampleClient_Follow() {
	registry, stop := exampleClient()
	defer stop()
	var stored client.Position // a real program reads it from a file or a database
	for page, err := range registry.Follow(context.Background(), client.Feed{Position: stored}, time.Minute) {
		if errors.Is(err, client.ErrStartOver) {
			fmt.Println("drop the copy")
			continue // Follow begins again at the start of the feed
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, asset := range page.Assets {
			fmt.Println(asset.ID)
		}
		stored = page.Next
		if len(page.Assets) == 0 {
			break // up to date; a real program continues
		}
	}
	fmt.Println(stored.Offset)
	// Output:
	// 8f6a
	// 91bc
	// 2026-11-22T00:32:46.881553+00:00
}

func ExampleError() {
	registry, stop := exampleClient()
	defer stop()
	_, err := registry.Get(context.Background(), "none")
	var refusal *client.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Status, refusal.Details[0].Location, refusal.Details[0].Name, client.IsNotFound(err))
	}
	fmt.Println(err)
	// Output:
	// 404 url asset_id true
	// GET /api/2.5/assets/none: 404 Not Found: url asset_id: Not Found
}
