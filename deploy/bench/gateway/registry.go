package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"asset-registry/shared/porttest"
)

// assetBody is the body of a request that creates an asset of about 3 KB.
var assetBody = `{"data": {"assetType": "bounce", "title": "Asset", "description": "` + strings.Repeat("x", 2000) + `",
	"items": [{"description": "Item", "classification": {"scheme": "CAV-PS", "id": "06111000-3", "description": "Flat"},
		"address": {"countryName": "Україна"}, "unit": {"code": "c"}, "quantity": 1,
		"registrationDetails": {"status": "unknown"}}],
	"assetCustodian": {"name": "Custodian", "identifier": {"scheme": "UA-EDR", "id": "12345678", "legalName": "Custodian"},
		"address": {"countryName": "Україна"}, "contactPoint": {"name": "Contact", "email": "contact@example.org"}},
	"decisions": [{"decisionDate": "2026-11-20T12:00:00+02:00", "decisionID": "1"}]}}`

// client sends requests that are not part of a measurement.
var client = http.Client{Timeout: 10 * time.Second}

// startRegistry starts the registry in one process, and creates one asset in it. It sets s.path and s.body,
// because all contenders answer with the bytes of this asset.
func (s *stage) startRegistry(ctx context.Context) error {
	if _, err := s.write("limits.yaml", "limits:\n"+
		"- {name: key, by: key, costs: {list: 1, read: 1, write: 1}, windows: {1s: 1000000}}\n"+
		"- {name: tenant, by: tenant, costs: {list: 1, read: 1, write: 1}, windows: {1s: 1000000}}\n"); err != nil {
		return err
	}
	addr, err := porttest.FreeAddr()
	if err != nil {
		return err
	}
	metrics, err := porttest.FreeAddr()
	if err != nil {
		return err
	}
	args := append([]string{"serve", "--sandbox", "--addr", addr, "--metrics-addr", metrics,
		"--data", filepath.Join(s.dir, "data"), "--log-level", "error"}, s.limits()...)
	const name = "the registry, all on, from memory"
	if err := s.contend(ctx, name, addr, s.tracing("registry"), filepath.Join(s.bin, "registry"), args...); err != nil {
		return err
	}
	registry := named(s.contenders, name)
	if registry == nil {
		return fmt.Errorf("%s is missing: run make build", filepath.Join(s.bin, "registry"))
	}
	if err := s.createAsset(ctx, "http://"+addr); err != nil {
		return err
	}
	registry.request = request(s.path)
	registry.forwarded = func() (int, error) { return missed(metrics) }
	return nil
}

// createAsset creates the asset in a registry, and stores the answer in the file s.body.
func (s *stage) createAsset(ctx context.Context, url string) error {
	text, err := send(ctx, http.MethodPost, url+"/api/2.5/assets", assetBody, http.StatusCreated)
	if err != nil {
		return err
	}
	var created struct{ Data struct{ ID string } }
	if err := json.Unmarshal(text, &created); err != nil {
		return fmt.Errorf("create asset: %w", err)
	}
	s.path = "/api/2.5/assets/" + created.Data.ID
	if text, err = send(ctx, http.MethodGet, url+s.path, "", http.StatusOK); err != nil {
		return err
	}
	s.body, err = s.write("asset.json", string(text))
	return err
}

// send sends a request with the key, and returns the body of the answer.
func send(ctx context.Context, method, url, body string, status int) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth(key, "")
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != status {
		err = fmt.Errorf("%s %s: got %d, want %d: %s", method, url, resp.StatusCode, status, text)
	}
	return text, err
}

// readings returns the number of requests for the asset that the upstream has received.
func (s *stage) readings() (n int, err error) {
	resp, err := client.Get("http://" + s.upstream + readingsPath)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = fmt.Fscan(resp.Body, &n)
	return n, err
}

// missed returns the number of reads that a registry could not answer from its memory, according to its metrics.
func missed(metrics string) (int, error) {
	resp, err := client.Get("http://" + metrics + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("registry_answers_lookups_total{")) && bytes.Contains(line, []byte(`"miss"`)) {
			var n float64
			_, err := fmt.Sscan(string(line[bytes.LastIndexByte(line, ' ')+1:]), &n)
			return int(n), err
		}
	}
	return 0, fmt.Errorf("got no readings in the metrics at %s, want how many were not found in memory", metrics)
}
