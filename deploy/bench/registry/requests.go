package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// assetBody is the body of a request that creates an asset. The asset is realistic and has 3 KB.
//
//go:embed asset.json
var assetBody []byte

// owned is an asset with its owner token.
type owned struct{ id, token string }

// fill creates and publishes n assets.
func fill(registry string, n int) (assets []owned, err error) {
	for range n {
		resp, err := http.DefaultClient.Do(request(http.MethodPost, "http://"+registry+"/api/2.5/assets", assetBody))
		if err != nil {
			return nil, err
		}
		var created struct {
			Access struct{ Token string }
			Data   struct{ ID string }
		}
		err = json.NewDecoder(resp.Body).Decode(&created)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusCreated {
			return nil, fmt.Errorf("create: status %d: %w", resp.StatusCode, err)
		}
		a := owned{created.Data.ID, created.Access.Token}
		publish := request(http.MethodPatch, "http://"+registry+"/api/2.5/assets/"+a.id,
			[]byte(`{"data":{"status":"pending"}}`))
		publish.Header.Set("X-Access-Token", a.token)
		resp, err = http.DefaultClient.Do(publish)
		if err != nil {
			return nil, err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("publish: status %d", resp.StatusCode)
		}
		assets = append(assets, a)
	}
	return assets, nil
}

// request returns a JSON request with the sandbox key "broker".
func request(method, url string, body []byte) *http.Request {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		panic(err) // can only happen by a mistake in this program
	}
	req.SetBasicAuth("broker", "")
	req.Header.Set("Content-Type", "application/json")
	return req
}

func get(url string) ([]byte, error) {
	resp, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: status %d", url, resp.StatusCode)
	}
	return io.ReadAll(resp.Body)
}

// getRequest returns the bytes of a GET request for path.
func getRequest(path string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: registry.test\r\n\r\n")
}

// createRequest returns the bytes of a request that creates an asset.
func createRequest() []byte { return writeRequest("POST", "/api/2.5/assets", "", assetBody) }

// changeRequest returns the bytes of a request that changes the title of an asset to "Title n".
func (a owned) changeRequest(n int64) []byte {
	return writeRequest("PATCH", "/api/2.5/assets/"+a.id, a.token, fmt.Appendf(nil, `{"data":{"title":"Title %d"}}`, n))
}

func writeRequest(method, path, token string, body []byte) []byte {
	key := base64.StdEncoding.EncodeToString([]byte("broker:"))
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: registry.test\r\nAuthorization: Basic %s\r\nX-Access-Token: %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, key, token, len(body), body)
}
