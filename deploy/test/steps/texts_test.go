package steps

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// texts are repeated until they have n bytes.
var texts = []string{
	`"`, `\`, "%", "%41", "&", "=", ";", ",", ", ", ".", "/", "-", "(", "{", "a", "0", " ", "\t", "*", "~0", "<", "'", "@",
	":", "a=b;", "a;q=0.1,", `W/"a",`, "0-1,", "uk,", "a-", "-a ", `"a" `, "a* ", "9,",
	"e\u0301", "\u0344", "\ufdfa", "\u1100\u1161\u11a8", "\u202e", "\U0001f468\u200d", "\u00ad", "\ufb03",
	"\u0130", "Київ ", "ї", "щщ", "ʼ",
}

// queries sends a text in queries and paths.
func (r *registry) queries(text string) {
	short := text[:min(len(text), 9000*r.n/(2*size))]
	q := url.QueryEscape(strings.ToValidUTF8(short, ""))
	for _, path := range []string{
		"/api/2.5/assets?opt_fields=", "/api/2.5/assets?offset=", "/api/2.5/assets?opt_jsonp=", "/api/2.5/search?q=",
		"/api/2.5/search?region=", "/api/2.5/search?sort=", "/api/2.5/suggest?q=", "/api/2.5/search.csv?q=", "/uk/?q=",
		"/uk/feed.atom?q=", "/get/x?Signature=", "/api/2.5/assets/", "/get/", "/uk/", "/log/", "/sitemap/",
		"/api/2.5/assets?", "/api/2.5/assets?a=1&a=", "/api/2.5/assets/x?acc_token=",
	} {
		r.send(r.addr, "GET", path+q, "")
	}
	if !strings.ContainsFunc(short, func(c rune) bool { return c <= ' ' || c > '~' }) {
		for _, path := range []string{"/", "/api/2.5/assets?", "/api/2.5/search?", "/uk/?", "/api/2.5/assets/", "/get/"} {
			r.send(r.addr, "GET", path+short, "")
		}
	}
	r.send(r.admin, "GET", "/console/?q="+q, "")
	r.send(r.admin, "POST", "/console/sign-in", "key="+q, isQuery, "Origin: http://a")
}

// headers sends a text in headers.
func (r *registry) headers(text string) {
	if strings.ContainsAny(text, "\r\n\x00") {
		return
	}
	for _, name := range []string{
		"Authorization: Basic ", "Authorization: Bearer ", "If-None-Match: ", "If-Match: ", "If-Range: ",
		"If-Modified-Since: ", "Accept: ", "Accept-Language: ", "Accept-Encoding: ", "Cookie: ", "Range: bytes=",
		"X-Forwarded-For: ", "Forwarded: ", "Origin: ", "Access-Control-Request-Headers: ", "Idempotency-Key: ",
		"Registry-Reference: ", "X-Access-Token: ", "traceparent: ", "tracestate: ", "baggage: ", "User-Agent: ",
		"Content-Type: ", "X-Request-ID: ", "Last-Event-ID: ", "Connection: ", "Prefer: ", "Cache-Control: ",
	} {
		r.send(r.addr, "GET", "/get/"+r.file, "", name+text)
		r.send(r.addr, "POST", "/api/2.5/assets", `{"data":{}}`, key, isJSON, name+text)
		if slices.Contains([]string{"Acc", "If-", "Ori", "Coo", "Aut"}, name[:3]) {
			r.send(r.addr, "GET", "/api/2.5/assets/"+r.id, "", name+text)
			r.send(r.addr, "GET", "/uk/", "", name+text)
			r.send(r.addr, "OPTIONS", "/api/2.5/assets", "", name+text)
			r.send(r.admin, "GET", "/admin/v1/keys", "", name+text)
		}
	}
}

func quoted(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always has an encoding
	}
	return string(encoded)
}

// asset returns the body of a creation, after the function `edit` has changed it.
func asset(edit func(a map[string]any)) string {
	var a map[string]any
	if err := json.Unmarshal([]byte(example), &a); err != nil {
		panic(err) // the example is a constant
	}
	if edit != nil {
		edit(a)
	}
	body, err := json.Marshal(map[string]any{"data": a})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(body)
}

const example = `{"assetType":"bounce","title":"a","description":"b","status":"pending",
"items":[{"description":"Приміщення","classification":{"scheme":"CAV-PS","id":"04121000-2","description":"a"},
"unit":{"code":"MTK"},"quantity":1,
"address":{"countryName":"Україна","region":"a","locality":"b","streetAddress":"c"},
"location":{"latitude":50.4,"longitude":30.5},"registrationDetails":{"status":"unknown"}}],
"decisions":[{"decisionDate":"2026-11-20T00:00:00+02:00","decisionID":"1637-10","title":"a"}],
"assetCustodian":{"name":"a","kind":"general","identifier":{"scheme":"UA-EDR","id":"00032945","legalName":"a"},
"address":{"countryName":"Україна"},"contactPoint":{"name":"a","telephone":"1","email":"a@b.example"}}}`

// leaves calls the function `each` with a setter of each text or number of a value.
func leaves(value any, set func(any), each func(set func(any))) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			leaves(v[name], func(to any) { v[name] = to }, each)
		}
	case []any:
		for i := range v {
			leaves(v[i], func(to any) { v[i] = to }, each)
		}
	default:
		each(set)
	}
}

// bodies sends a text as each field of an asset, and in the bodies of other requests.
func (r *registry) bodies(text string) {
	fields := 0
	asset(func(a map[string]any) { leaves(a, nil, func(func(any)) { fields++ }) })
	for i := range fields {
		at := -1
		r.send(r.addr, "POST", "/api/2.5/assets", asset(func(a map[string]any) {
			leaves(a, nil, func(set func(any)) {
				if at++; at == i {
					set(text)
				}
			})
		}), key, isJSON)
	}
	q := quoted(text)
	r.send(r.addr, "PATCH", r.own(), `{"data":{"title":`+q+`,"description":`+q+`}}`, key, isJSON)
	for path, form := range map[string]string{
		"/api/2.5/webhooks":  `{"data":{"url":%[1]s,"description":%[1]s,"filters":{"q":%[1]s}}}`,
		"/api/2.5/transfers": `{"data":{%s:1}}`,
		"/register":          `{"data":{"hash":%[1]s,"title":%[1]s}}`, "/api/2.5/assets": `{"data":{%[1]s:%[1]s}}`,
		"/api/2.5/assets/" + r.id + "/ownership?acc_token=" + r.token: `{"data":{"id":%[1]s,"transfer":%[1]s}}`,
		"/api/2.5/assets/" + r.id + "/documents?acc_token=" + r.token: `{"data":{"url":%[1]s,"hash":%[1]s,"title":%[1]s}}`,
	} {
		r.send(r.addr, "POST", path, fmt.Sprintf(form, q), key, isJSON)
	}
	r.send(r.addr, "POST", "/register", "hash="+text, key, isQuery)
}

func fileForm(name, contentType string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n" +
		"Content-Type: " + contentType + "\r\n\r\nx\r\n--b--\r\n"
}

// forms sends a text in the parts of forms.
func (r *registry) forms(text string) {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
	for _, body := range []string{
		fileForm(escaped, "text/plain"), fileForm("a", text), fileForm("a\"; "+text+"=\"", "a"),
		"--b\r\nContent-Disposition: form-data; name=\"" + escaped + "\"\r\n\r\nx\r\n--b--\r\n",
		"--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n" + text + "\r\n" + fileForm("a", "a"),
		"--b\r\n" + text + "\r\n\r\n", text, fileForm("a", "text/plain") + strings.Repeat("\r\n-", r.n/3),
	} {
		for _, path := range []string{"/upload", "/api/2.5/assets/" + r.id + "/documents?acc_token=" + r.token} {
			r.send(r.addr, "POST", path, body, key, isForm)
		}
	}
}

// shapesOf returns bodies of about n bytes that are hostile by their form.
func shapesOf(n int) []string {
	of := func(before, each, after string) string { return before + strings.Repeat(each, n/len(each)) + after }
	all := []string{
		of("", "[", ""), of("", `{"a":`, ""), of("", `"`, ""), of("", `\`, ""), of("", " ", "{}"),
		of(`{"data":`, "[", strings.Repeat("]", n)+"}"),
		of(`{"data":{"a":1`, `,"a":1`, "}}"), of(`{"data":{"title":"a"`, `,"title":"a"`, "}}"),
		of(`{"data":{"a":`, "1", "}}"),
		of(`{"data":{"a":1e`, "1", "}}"), of(`{"data":{"a":0.`, "0", "}}"), of(`{"data":{"title":"`, `\u0301`, `"}}`),
		of(`{"data":{"title":"`, "\xff", `"}}`), of(`{"`, "a", `":1}`), of(`{"data":[1`, ",1", "]}"),
	}
	many := `{"data":{"a":1`
	for i := range n / 10 {
		many += fmt.Sprintf(`,"a%d":1`, i)
	}
	all = append(all, many+"}}")
	for _, list := range []string{"items", "decisions", "documents", "relatedProcesses"} {
		for _, element := range []string{"{}", "[]", "1", `""`, `{"id":"a"}`, `{"title":"a"}`} {
			all = append(all, of(`{"data":{"`+list+`":[`+element, ","+element, "]}}"))
		}
	}
	return all
}

// shapes sends bodies, headers and queries that are hostile by their form or number.
func (r *registry) shapes() {
	for _, body := range shapesOf(r.n) {
		for _, path := range []string{
			"/api/2.5/assets", "/api/2.5/webhooks", "/api/2.5/transfers", "/register",
			"/api/2.5/assets/" + r.id + "/documents?acc_token=" + r.token,
			"/api/2.5/assets/" + r.id + "/items?acc_token=" + r.token,
		} {
			r.send(r.addr, "POST", path, body, key, isJSON)
		}
		r.send(r.addr, "PATCH", r.own(), body, key, isJSON)
		r.send(r.addr, "PUT", r.own(), body, key, isJSON)
	}
	for _, header := range []string{
		"Cookie: SERVER_ID=a", "X-A: b", `If-None-Match: "a"`, "Range: bytes=0-1", "Accept: */*", "X-Forwarded-For: 1.1.1.1",
		"Accept-Language: uk", "Origin: http://a",
	} {
		for _, path := range []string{"/api/2.5/assets", "/get/" + r.file, "/uk/"} {
			r.send(r.addr, "GET", path, "", slices.Repeat([]string{header}, r.n/(len(header)+2))...)
		}
	}
	for _, parameter := range []string{
		"a&", "q=a&", "limit=1&", "opt_fields=a&", "region=a&", "status=active&", "%26&", "a=%&",
	} {
		for _, path := range []string{
			"/api/2.5/assets?", "/api/2.5/search?", "/uk/?", "/api/2.5/suggest?", "/get/" + r.file + "&",
		} {
			r.send(r.addr, "GET", path+strings.Repeat(parameter, r.n/len(parameter)), "")
		}
	}
	for _, part := range []string{
		"--b\r\n", "--b\r\n\r\n", "\r\n--b", "A: b\r\n", "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n",
	} {
		r.send(r.addr, "POST", "/upload", "--b\r\n"+strings.Repeat(part, 4*r.n/len(part)), key, isForm)
	}
}

// large makes assets with many elements, which all differ, changes each, and reads them in every form.
func (r *registry) large() {
	elements := r.n / 12
	for _, list := range []struct{ in, name string }{
		{"", "items"}, {"", "decisions"}, {"assetCustodian", "additionalContactPoints"},
		{"assetCustodian", "additionalIdentifiers"}, {"items", "additionalClassifications"},
	} {
		reversed := ""
		body := asset(func(a map[string]any) {
			within := a
			switch of := a[list.in].(type) {
			case map[string]any:
				within = of
			case []any:
				within = of[0].(map[string]any)
			}
			all := make([]any, elements)
			for i := range all {
				all[i] = element(a, list.name, i)
			}
			within[list.name] = all
			slices.Reverse(all)
			reversed = quotedList(a)
			slices.Reverse(all)
		})
		made := r.create(body)
		own := "/api/2.5/assets/" + made.Data.ID
		r.send(r.addr, "PATCH", own+"?acc_token="+made.Access.Token, reversed, key, isJSON)
		r.send(r.addr, "PATCH", own+"?acc_token="+made.Access.Token, `{"data":{"status":"pending"}}`, key, isJSON)
		// The log has the asset later, and each run shall read a proof.
		for end := time.Now().Add(time.Minute); strings.Contains(r.send(r.addr, "GET", own+"/proof", ""), `"errors"`); {
			if time.Now().After(end) {
				r.t.Fatal("got no proof in a minute")
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, path := range []string{
			own, "/api/2.4/assets/" + made.Data.ID, own + "?opt_jsonp=a&opt_pretty=1", own + "/items", own + "/proof",
			own + "/revisions", own + "?opt_fields=items.id", "/uk/assets/" + made.Data.ID,
			"/uk/assets/" + made.Data.ID + "/changes", "/assets/" + made.Data.ID,
		} {
			r.send(r.addr, "GET", path, "", key)
		}
	}
	for _, path := range []string{
		"/uk/", "/api/2.5/assets?opt_fields=*", "/api/2.5/search?q=d1", "/uk/feed.atom", "/api/2.5/search.csv",
		"/uk/statistics",
	} {
		r.send(r.addr, "GET", path, "")
	}
}

// element returns an element of a list of an asset; no two are equal.
func element(a map[string]any, list string, i int) any {
	id, text := fmt.Sprintf("%032x", i), fmt.Sprintf("d%d", i)
	switch list {
	case "items":
		item := maps.Clone(a["items"].([]any)[0].(map[string]any))
		item["id"] = id
		item["classification"] = map[string]any{"scheme": "CAV-PS", "id": "04121000-2", "description": text}
		item["address"] = map[string]any{"countryName": "Україна", "locality": text, "streetAddress": text}
		return item
	case "decisions":
		return map[string]any{"id": id, "decisionDate": "2026-11-20T00:00:00+02:00", "decisionID": text, "title": text}
	case "additionalIdentifiers":
		return map[string]any{"scheme": "UA-EDR", "id": fmt.Sprintf("%08d", i), "legalName": text}
	case "additionalContactPoints":
		return map[string]any{"name": text, "telephone": "1", "email": text + "@b.example"}
	}
	return map[string]any{"scheme": "UA-EDR", "id": fmt.Sprintf("%08d", i), "description": text}
}

func quotedList(a map[string]any) string {
	body, err := json.Marshal(map[string]any{"data": a})
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return string(body)
}
