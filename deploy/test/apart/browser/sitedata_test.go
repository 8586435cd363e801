package browser

import (
	"encoding/json"
	"testing"

	"asset-registry/shared/testing/expect"
)

// property is the content of a test asset.
type property struct {
	title, titleEn, about, code, kind, unit string
	quantity                                json.Number
	region, locality, street                string
	custodian, edr                          string
	status                                  string // the state to which the method `make` moves the asset
}

// properties are assets like those of a real registry.
var properties = []property{
	{"Нежитлова будівля загальною площею 1 284,6 м²", "Non-residential building, 1,284.6 m²",
		"Двоповерхова адміністративна будівля 1978 року.\nПід’єднано електрику та воду. Потребує ремонту покрівлі.",
		"04121000-2", "Адміністративні будівлі", "MTK", "1284.6", "Львівська область", "Дрогобич", "вул. Шевченка, 14",
		"Регіональне відділення Фонду державного майна України по Львівській області", "42899921", "active"},
	{"Земельна ділянка сільськогосподарського призначення", "Agricultural land",
		"Кадастровий номер 3220888000:04:001:0123. Без забудови.", "06111000-3", "Землі сільськогосподарського призначення",
		"HAR", "12.4", "Київська область", "Біла Церква", "", "Білоцерківська міська рада", "26376300", "pending"},
	{"Приміщення кав’ярні на першому поверсі", "", "Окремий вхід із вулиці, вітрина 4 м.", "04122000-9",
		"Приміщення громадського харчування", "MTK", "86", "м. Київ", "Київ", "вул. Ярославів Вал, 21",
		"Департамент комунальної власності м. Києва", "19020407", "verification"},
	{"Єдиний майновий комплекс «Ґанок»", "Integral property complex “Hanok”",
		"Майстерні, склад і під’їзні шляхи колишнього ремонтного заводу.", "04151000-1", "Виробничі комплекси", "H87", "1",
		"Полтавська область", "Кременчук", "просп. Свободи, 2", "Фонд державного майна України", "00032945", "complete"},
	{"Гаражний бокс № 7", "", "Цегляний, з оглядовою ямою.", "04131000-5", "Гаражі", "MTK", "21.35", "Одеська область",
		"Чорноморськ", "вул. Захисників України, 3а", "Чорноморська міська рада", "25929966", "pending"},
}

// create returns the body of the request that creates the asset.
func (p property) create(t *testing.T) string {
	t.Helper()
	text := func(name, value string, to map[string]any) {
		if value != "" {
			to[name] = value
		}
	}
	address := map[string]any{"countryName": "Україна"}
	text("region", p.region, address)
	text("locality", p.locality, address)
	text("streetAddress", p.street, address)
	data := map[string]any{
		"assetType": "bounce", "title": p.title, "description": p.about,
		"items": []any{map[string]any{
			"description": p.kind, "classification": map[string]any{"scheme": "CAV-PS", "id": p.code, "description": p.kind},
			"unit": map[string]any{"code": p.unit}, "quantity": p.quantity, "address": address,
			"registrationDetails": map[string]any{"status": "complete", "registrationID": "0123456789",
				"registrationDate": "2026-10-01T00:00:00+03:00"},
		}},
		"decisions": []any{map[string]any{"decisionDate": "2026-11-20T00:00:00+02:00", "decisionID": "1637-10",
			"title": "Про приватизацію державного майна"}},
		"assetCustodian": map[string]any{"name": p.custodian, "identifier": map[string]any{"scheme": "UA-EDR", "id": p.edr},
			"address":      map[string]any{"countryName": "Україна", "locality": p.locality},
			"contactPoint": map[string]any{"name": "Відділ приватизації", "telephone": "+380440000000", "email": "office@example.org"}},
	}
	text("title_en", p.titleEn, data)
	body, err := json.Marshal(map[string]any{"data": data})
	expect.OK(t, err)
	return string(body)
}

// fill creates the assets in `properties`, the last one first. It returns the id of the first asset in
// `properties`, which it creates last.
func (r *registry) fill(t *testing.T) (id string) {
	t.Helper()
	for at := len(properties) - 1; at >= 0; at-- {
		id = r.make(t, properties[at])
	}
	return id
}

// make creates an asset with a document, and moves the asset to its state.
func (r *registry) make(t *testing.T, p property) string {
	t.Helper()
	var made struct {
		Data   struct{ ID string }
		Access struct{ Token string }
	}
	expect.OK(t, json.Unmarshal(r.send(t, "POST", "/assets", "broker", p.create(t)), &made))
	path := "/assets/" + made.Data.ID
	step := func(status string) {
		r.send(t, "PATCH", path, "administrator", `{"data":{"status":"`+status+`"}}`)
	}
	step("pending")
	r.send(t, "POST", path+"/documents?acc_token="+made.Access.Token, "broker",
		`{"data":{"documentType":"technicalSpecifications","title":"Технічний паспорт","format":"application/pdf",
		"url":"https://docs.example.org/passport.pdf","hash":"md5:0cc175b9c0f1b6a831c399e269772661"}}`)
	if p.status == "pending" {
		return made.Data.ID
	}
	change, err := json.Marshal(map[string]any{"data": map[string]string{"description": p.about + " Уточнено."}})
	expect.OK(t, err)
	r.send(t, "PATCH", path+"?acc_token="+made.Access.Token, "broker", string(change))
	step("verification")
	if p.status == "verification" {
		return made.Data.ID
	}
	r.send(t, "POST", path+"/related_processes", "concierge",
		`{"data":{"type":"lot","relatedProcessID":"0123456789abcdef0123456789abcdef","identifier":"UA-LR-SSP-2026-11-23-000001"}}`)
	step("active")
	if p.status == "complete" {
		step("complete")
	}
	return made.Data.ID
}
