package openapi

import (
	"bytes"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// aboutFiles returns requests about files, one for each status of the operation.
func aboutFiles(t *testing.T, r *registry, o operation) (all []expected) {
	t.Helper()
	if !o.isBeside {
		return nil
	}
	at := func(method, path, key, contentType string, body []byte) request {
		q := request{method: method, path: path, body: body, header: map[string]string{"Authorization": basic(key)}}
		if contentType != "" {
			q.header["Content-Type"] = contentType
		}
		return q
	}
	add := func(status int, q request) { all = append(all, expected{q, status}) }
	upload := func(to, content string) request {
		contentType, body := fileForm(content)
		return at("POST", to, "broker", contentType, body)
	}
	registration := func(body string) request { return at("POST", "/register", "broker", "application/json", []byte(body)) }
	stored := newFile(t, r)
	switch o.OperationID {
	case "registerFile":
		add(201, registration(fmt.Sprintf(`{"data":{"hash":%q}}`, hashOf("content"))))
		add(400, registration("{"))
		add(404, registration("{}"))
		add(413, registration(`{"data":{"x":"`+strings.Repeat("x", 70_000)+`"}}`))
		add(422, registration(`{"data":{"hash":"x"}}`))
	case "uploadFile":
		add(200, upload(o.path, "content"))
		add(404, at("POST", o.path, "broker", "text/plain", nil))
	case "uploadRegisteredFile":
		to := registered(t, r, "content")
		add(403, upload(to, "other content"))
		add(404, at("POST", to, "broker", "text/plain", nil))
		add(200, upload(to, "content"))
	case "listFiles":
		add(200, at("GET", o.path, "broker", "", nil))
		add(400, at("GET", o.path+"?limit=x", "broker", "", nil))
		add(403, at("GET", o.path+"?broker=other", "broker", "", nil))
	case "listRemovedFiles":
		add(200, at("GET", o.path, "broker", "", nil))
		add(400, at("GET", o.path+"?after=x", "broker", "", nil))
	case "readPicture":
		_, to := illustrated(t, r)
		add(200, at("GET", to, "broker", "", nil))
		for status, header := range ranged {
			q := at("GET", to, "broker", "", nil)
			name, value, _ := strings.Cut(header, ": ")
			q.header[name] = value
			add(status, q)
		}
		add(403, request{method: "GET", path: "/get/" + stored + "/320"})
		add(404, at("GET", "/get/"+stored+"/320", "broker", "", nil))
		gone := newFile(t, r)
		add(200, at("DELETE", "/get/"+gone+"?reason=x", "administrator", "", nil))
		add(410, at("GET", "/get/"+gone+"/320", "broker", "", nil))
	case "readFile":
		waits, _, _ := strings.Cut(strings.Replace(registered(t, r, "waits"), "/upload/", "/get/", 1), "?")
		to := "/get/" + stored
		add(200, at("GET", to, "broker", "", nil))
		add(204, at("GET", waits, "broker", "", nil))
		for status, header := range ranged {
			q := at("GET", to, "broker", "", nil)
			name, value, _ := strings.Cut(header, ": ")
			q.header[name] = value
			add(status, q)
		}
		add(403, request{method: "GET", path: to})
		add(404, at("GET", "/get/"+strings.Repeat("0", 32), "broker", "", nil))
		gone := newFile(t, r)
		add(200, at("DELETE", "/get/"+gone+"?reason=x", "administrator", "", nil))
		add(410, at("GET", "/get/"+gone, "broker", "", nil))
	case "readArchive":
		asset, _ := illustrated(t, r)
		add(200, at("GET", "/get/"+asset+"/documents.zip", "broker", "", nil))
		add(404, at("GET", "/get/"+strings.Repeat("0", 32)+"/documents.zip", "broker", "", nil))
	case "removeFile":
		add(400, at("DELETE", "/get/"+stored, "administrator", "", nil))
		add(403, at("DELETE", "/get/"+stored+"?reason=x", "broker", "", nil))
		add(404, at("DELETE", "/get/"+strings.Repeat("0", 32)+"?reason=x", "administrator", "", nil))
		add(200, at("DELETE", "/get/"+stored+"?reason=x", "administrator", "", nil))
	}
	if key := basic("nobody"); len(all) > 0 {
		q := all[0].request
		q.header = maps.Clone(q.header)
		q.header["Authorization"] = key
		add(401, q)
	}
	return all
}

// ranged has headers with which a GET of a file does not get 200. The keys are the statuses that it gets instead.
var ranged = map[int]string{
	206: "Range: bytes=0-1", 416: "Range: bytes=9999-", 304: "If-None-Match: *", 412: `If-Match: "x"`,
}

// illustrated adds an illustration to an asset, and returns the path of the illustration's small picture.
func illustrated(t *testing.T, r *registry) (asset, picture string) {
	t.Helper()
	places := expect.Get(r.furnish(t.Context()))(t)
	var drawing bytes.Buffer
	expect.OK(t, png.Encode(&drawing, image.NewGray(image.Rect(0, 0, 4, 4))))
	p := published(operation{}, places)
	contentType, form := fileForm(drawing.String())
	const fields = "--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n" +
		`{"documentType":"illustration","title":"x","format":"image/png"}` + "\r\n"
	got, err := r.send(t.Context(), request{
		method: "POST", path: "/api/2.5/assets/" + p.id + "/documents", body: append([]byte(fields), form...),
		header: map[string]string{"Authorization": basic(p.key), "X-Access-Token": p.token, "Content-Type": contentType},
	})
	if err != nil || got.status != http.StatusCreated {
		t.Fatalf("an illustration: got %d %.300s, %v, want 201", got.status, got.body, err)
	}
	var added struct{ Data struct{ URL string } }
	expect.OK(t, json.Unmarshal(got.body, &added))
	u := expect.Get(url.Parse(added.Data.URL))(t)
	awaitNot(t, r, u.Path+"/320", http.StatusForbidden)
	awaitNot(t, r, u.Path+"/320", http.StatusNotFound)
	return p.id, u.Path + "/320"
}

func hashOf(content string) string { return fmt.Sprintf("md5:%x", md5.Sum([]byte(content))) }

// newFile uploads a new file as "broker", and returns its id.
func newFile(t *testing.T, r *registry) string {
	t.Helper()
	return expect.Get(r.upload(t.Context()))(t)
}

// registered registers a new file as "broker", and returns the path and query to which it must be uploaded.
func registered(t *testing.T, r *registry, content string) string {
	t.Helper()
	got := expect.Get(r.must(t.Context(), http.StatusCreated, "POST", "/register", "broker", "",
		fmt.Sprintf(`{"data":{"hash":%q}}`, hashOf(content))))(t)
	return expect.Get(url.Parse(got.header.Get("Location")))(t).RequestURI()
}
