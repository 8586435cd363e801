package index

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"asset-registry.example/client"
	"asset-registry/searchsvc/internal/search"
	"asset-registry/shared/filelink"
	"asset-registry/shared/ukrainian"
)

// indexFormat returns the format of the index. An index of a different format is built anew. The format is a hash of
// the table of properties, of the limits, and of samples that the program makes. The samples are the keys of many
// words, and the terms, the hit and the picture of one asset. If any of these change, the format changes too.
var indexFormat = sync.OnceValue(computeFormat)

func computeFormat() string {
	hash := sha256.New()
	fmt.Fprintln(hash, layout, ukrainian.Fingerprint())
	fmt.Fprintln(hash, maxID, maxShown, maxCode, shownItems, maxTerms, maxWords, maxTerm, maxKey, search.MaxHit)
	fmt.Fprintln(hash, search.UnitCodes, ukrainian.UnitForms, search.MaxAmount)
	for _, p := range search.Properties {
		fmt.Fprintln(hash, p.Name, p.Field, p.Names, p.Levels)
	}
	terms, hit, err := sample().fields(1)
	if err != nil { // cannot happen: the sample is constant
		panic(fmt.Sprintf("index: %v", err))
	}
	for _, list := range terms {
		slices.Sort(list)
	}
	fmt.Fprintf(hash, "%q %s %s", terms, hit, sample().pictures()) // fmt sorts the keys of maps
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// layout must be increased by hand for changes that the samples do not show: changes in the way scorch stores fields,
// and changes in the meaning of the index's state.
const layout = 1

// sample returns an asset with a value in each field.
func sample() *asset {
	place := address{"вулиця Банкова, 11", "м. Київ", "Київська область", "01001", "Україна"}
	owner := organisation{
		Name: "Фонд державного майна", NameEn: "State Property Fund", NameRu: "Фонд имущества", Address: place,
		Identifier: identifier{Scheme: "UA-EDR", ID: jsontext.Value(`"00032945"`), LegalName: "Фонд"},
	}
	code := classification{"CAV-PS", "04121000-2", "Приміщення", "Premises", "Помещения"}
	stamp := client.Timestamp("2026-11-20T12:00:00.000000+02:00")
	return &asset{
		ID: "0123456789abcdef0123456789abcdef", DateModified: stamp, AssetID: "UA-AR-P-2026-11-20-000001",
		AssetType: "bounce", Status: client.Active, Date: string(stamp),
		Title: "Нежитлове приміщення", TitleEn: "Premises", TitleRu: "Помещение",
		Description: "Опис об’єкта", DescriptionEn: "Description", DescriptionRu: "Описание", Owner: "broker",
		Rectification: period{stamp}, AssetCustodian: owner, AssetHolder: owner,
		Items: []item{{
			Description: "Кімната", DescriptionEn: "Room", DescriptionRu: "Комната", Classification: code,
			Additional: []classification{code}, Unit: unit{"MTK", "м²"}, Quantity: jsontext.Value("240.5"), Address: place,
			Registration: registration{"77-12"},
		}},
		Decisions: []decision{{"Наказ", "1637-10"}},
		Documents: []document{
			{
				ID: "1", DocumentType: filelink.Illustration, Title: "Фасад", Format: "image/jpeg", SHA256: "b1",
				URL: "https://registry.example/get/00112233445566778899aabbccddeeff",
			},
			{ID: "2", DocumentType: client.InformationDetails, Title: "Інформація"},
		},
		Processes: []process{{"fedcba9876543210fedcba9876543210", "UA-LR-SSP-2026-11-20-000001"}},
	}
}
