package asset

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"asset-registry/assetsvc/internal/record"
	"asset-registry/shared/testing/expect"
)

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, patch, place, says string }{
		{"a fraction for a text", `{"title":1.5}`, "title", "Couldn't interpret '1.5' as string."},
		{"an empty title", `{"title":""}`, "title", "This field is required."},
		{"null for a required field", `{"description":null}`, "description", "This field is required."},
		{"an object for a list", `{"items":{}}`, "items", "list"},
		{"a text for an object", `{"assetCustodian":"x"}`, "assetCustodian",
			"Please use a mapping for this field or Organization instance instead of string."},
		{"an unknown field below", `{"items":[{"unit":{"colour":1}}]}`, "items.0.unit.colour", "Rogue field"},
		{"an unknown choice", `{"items":[{"registrationDetails":{"status":"x"}}]}`,
			"items.0.registrationDetails.status", "Value must be one of ['unknown', 'registering', 'complete']."},
		{"a bad web address", `{"assetCustodian":{"identifier":{"uri":"ftp://x.ua"}}}`,
			"assetCustodian.identifier.uri", "Not a well formed URL."},
		{"a bad mail address", `{"assetCustodian":{"contactPoint":{"email":"x"}}}`,
			"assetCustodian.contactPoint.email", "Not a well formed email address."},
		{"neither phone nor mail", `{"assetCustodian":{"contactPoint":{"telephone":null}}}`,
			"assetCustodian.contactPoint.email", "telephone or email should be present"},
		{"a text that is not a time", `{"rectificationPeriod":{"startDate":"x"}}`, "rectificationPeriod.startDate",
			"Could not parse x. Should be ISO8601."},
		{"a time that is too late", `{"rectificationPeriod":{"startDate":"9999-12-31T23:59:59-01:00"}}`,
			"rectificationPeriod.startDate", "date value out of range"},
		{"a quantity that would become 0", `{"items":[{"quantity":0.00004}]}`, "items.0.quantity",
			"Number '0.00004' would become 0: 4 fraction digits are kept."},
		{"a quantity far below", `{"items":[{"quantity":"-1e-400"}]}`, "items.0.quantity",
			"Number '-1e-400' would become 0: 4 fraction digits are kept."},
		{"schema properties", `{"items":[{"schema_properties":{"a":1}}]}`, "items.0.schema_properties",
			"Opportunity to use schema_properties is disabled"},
		{"two related processes", `{"relatedProcesses":[{"relatedProcessID":"` + strings.Repeat("a", 32) +
			`"},{"relatedProcessID":"` + strings.Repeat("b", 32) + `"}]}`, "relatedProcesses",
			"Please provide no more than 1 item."},
		{"a reference that is too short", `{"relatedProcesses":[{"relatedProcessID":"a"}]}`,
			"relatedProcesses.0.relatedProcessID", "Hash value is wrong length."},
		{"a bad type in an ignored field", `{"documents":"x"}`, "documents.0", "mapping"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := rules.Change(valid(t, `{}`),
				Change{Fields: parse(t, c.patch), Caller: Caller{Role: Owner}, Now: evening, NewID: ids()})
			if places(err) != c.place || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s: %s", err, c.place, c.says)
			}
		})
	}
}

// Promises: all-faults
func TestTheNumberOfFaultsIsBounded(t *testing.T) {
	sent := record.Object{}
	for i := range 100_000 {
		sent = append(sent, record.Member{Name: strings.Repeat("x", 1+i%50) + string(rune('a'+i%26)), Value: true})
	}
	_, err := rules.Create(sent, origin())
	expect.Equal(t, len(strings.Fields(places(err))), maxFaults, "unknown fields, faults")
	items := record.List{}
	for range maxFaults {
		items = append(items, parse(t, `{"quantity":"x","id":1.5,"description":1.5}`))
	}
	_, err = rules.Create(parse(t, validText).With("items", items), origin())
	expect.Equal(t, len(strings.Fields(places(err))), maxFaults, "items with three faults each, faults")
}

func TestDecimals(t *testing.T) {
	for _, c := range []struct{ written, want string }{
		{"5.0001", "5.0001"}, {"0.1", "0.1"}, {"123456789012345678.5", "123456789012345678.5"}, {"1.50", "1.5"},
		{"100", "100"}, {"-0", "0"}, {"1e3", "1000"}, {"+7", "7"}, {".5", "0.5"},
		{"2.00005", "2.0001"}, {"2.00004999", "2"}, {"-2.00005", "-2.0001"}, {"0.00004", "0"}, {"0.00005", "0.0001"},
		{"1e-400", "0"}, {"0e9999", "0"}, {strings.Repeat("0", decimalLength-1) + "7", "7"},
		{"9999999999999999999999999999999999", "9999999999999999999999999999999999"},
		{"999999999999999999999999999999.99999", "1000000000000000000000000000000"},
	} {
		if got, ok := parseDecimal(c.written, quantityPlaces); !ok || string(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.written, got, ok, c.want)
		}
	}
	for _, written := range []string{"", "x", "1e999999999", "0e999999999", "1e34",
		"12345678901234567890123456789012345", "NaN", "Infinity", "0x10", "1,5", "1 ", "--1", "1e", "٣",
		"1e0000000003", "9999999999999999999999999999999999.99999", "1234567890123456789012345678901234.5",
		strings.Repeat("0", decimalLength) + "7"} {
		if got, ok := parseDecimal(written, quantityPlaces); ok {
			t.Errorf("%.40q: got %s, want no decimal", written, got)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	for _, seed := range []string{"5.0001", "-0.00005", "1e33", "1e-9999", "00012.50", "+.5e2",
		"999999999999999999999999999999.99995"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		got, ok := parseDecimal(written, quantityPlaces)
		if !ok {
			return
		}
		if len(got) > decimalDigits+2 || strings.ContainsAny(string(got), "eE+") {
			t.Fatalf("%q: got %s, want at most %d digits and no exponent", written, got, decimalDigits)
		}
		if again, ok := parseDecimal(string(got), quantityPlaces); !ok || again != got {
			t.Fatalf("%q: got %s, which parses as %s, %v; want the same decimal", written, got, again, ok)
		}
		if value, err := record.Parse([]byte(got)); err != nil || value != got {
			t.Fatalf("%q: got %s, %v; want a JSON number", written, got, err)
		}
	})
}

// Promises: times, times-refused
func TestTimes(t *testing.T) {
	kyiv := time.FixedZone("", 2*3600)
	for _, c := range []struct{ text, want string }{
		{"2026-11-20", "2026-11-20T00:00:00.000000+02:00"},
		{"2026-11-20T12:00", "2026-11-20T12:00:00.000000+02:00"},
		{"2026-11-20 12:00:01", "2026-11-20T12:00:01.000000+02:00"},
		{"2026-11-20T12:00:01.5", "2026-11-20T12:00:01.500000+02:00"},
		{"2026-11-20T12:00:01.1234567Z", "2026-11-20T12:00:01.123456+00:00"},
		{"2026-11-20T12:00:01,5-0330", "2026-11-20T12:00:01.500000-03:30"},
		{"2026-11-20T12:00:01+03", "2026-11-20T12:00:01.000000+03:00"},
		{"2024-02-29T23:59:59.999999+23:59", "2024-02-29T23:59:59.999999+23:59"},
	} {
		got, err := ParseTime(c.text, kyiv)
		if err != nil || FormatTime(got, got.Location()) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.text, FormatTime(got, got.Location()), err, c.want)
		}
	}
	for _, c := range []struct {
		text string
		want error
	}{
		{"", ErrTimeForm}, {"x", ErrTimeForm}, {"2026", ErrTimeForm}, {"2026-11", ErrTimeForm},
		{"2026-13-01", ErrTimeForm}, {"2026-02-30", ErrTimeForm}, {"2026-11-20T24:00:00", ErrTimeForm},
		{"2026-11-20T12:60", ErrTimeForm}, {"2026-11-20T12:00:60Z", ErrTimeForm},
		{"2026-11-20T12:00:00+24:00", ErrTimeForm}, {"2026-11-20T12:00:00.Z", ErrTimeForm},
		{"2026-11-20Z", ErrTimeForm},
		{"2026-11-20T12:00:00Z ", ErrTimeForm}, {"20261120", ErrTimeForm}, {"2026-11-20T", ErrTimeForm},
		{"-026-11-20", ErrTimeForm}, {"٢٠٢٦-11-20", ErrTimeForm},
		{"0000-01-01", ErrTimeRange}, {"0001-01-01T00:00:00+01:00", ErrTimeRange},
		{"9999-12-31T23:59:59-01:00", ErrTimeRange},
	} {
		expect.ErrOf(t, c.want, "%q", c.text)(ParseTime(c.text, time.UTC))
	}
}

func TestPrintedTimesOrderAsTimesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(0, 253_402_300_799_000_000-86_400_000_000)
		a, b := micros.Draw(t, "a"), micros.Draw(t, "b")
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "minutes east"))
		x, y := FormatTime(time.UnixMicro(a), zone), FormatTime(time.UnixMicro(b), zone)
		if (a < b) != (x < y) {
			t.Fatalf("%d and %d: got %s and %s, want the same order", a, b, x, y)
		}
		if back, err := ParseTime(x, time.UTC); err != nil || back.UnixMicro() != a {
			t.Fatalf("%s: got %v, %v; want %d microseconds", x, back, err, a)
		}
	})
}

func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{"2026-11-20T12:00:01.123456+02:00", "2026-11-20", "2026-11-20 12:00Z",
		"2026-11-20T12:00:01,5-0330", "9999-12-31T23:59:59-23:59", "0001-01-01"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseTime(text, time.UTC)
		if err != nil {
			return
		}
		printed := FormatTime(got, got.Location())
		if again, err := ParseTime(printed, time.UTC); err != nil || !again.Equal(got) ||
			FormatTime(again, again.Location()) != printed {
			t.Fatalf("%q: got %s, which parses as %v, %v; want the same time", text, printed, again, err)
		}
	})
}

func TestCodeListsAreComplete(t *testing.T) {
	expect.Equal(t, len(identifierSchemes), 155, "identifier schemes")
	if !cavPSCodes.has("06111000-3") {
		t.Error("got no code 06111000-3 in CAV-PS, want it")
	}
	for _, c := range []struct{ name, file string }{
		{"no source", "a\n"}, {"a blank after a code", "# x\na \n"}, {"codes out of order", "# x\nb\na\n"},
		{"a code that comes twice", "# x\na\na\n"}, {"an empty line", "# x\na\n\nb\n"},
		{"an empty first line", "# x\n\nb\n"},
	} {
		expect.FailsOf(t, "%s", c.name)(parseCodes(c.file))
	}
	for _, c := range []struct{ name, file string }{{"no source", "a b\n"}, {"a scheme without a form", "# x\na\n"}, {"an invalid form", "# x\na (\n"}} {
		expect.FailsOf(t, "schemes, %s", c.name)(parseSchemes(c.file))
	}
}
