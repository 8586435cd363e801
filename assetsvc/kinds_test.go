package assetsvc

import (
	"strings"
	"testing"
)

func TestAnAddressNamesTheKindOfItsStore(t *testing.T) {
	for address, announces := range map[string]bool{
		"file:data.db": true, "mongodb://a:1,b:2/registry": false, "mongodb+srv://a/registry": false,
	} {
		k, err := Config{Store: address}.kind()
		if err != nil || k.announces != announces {
			t.Errorf("%s: got announces %t, %v; want %t", address, k.announces, err, announces)
		}
	}
	for _, address := range []string{"", "file:", "/data.db", "mongodb://", "redis://:hunter2@a", "mongodb:hunter2"} {
		_, err := Config{Store: address}.kind()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want an error without the password", address, err)
			continue
		}
		for _, k := range kinds {
			if !strings.Contains(err.Error(), k.form) {
				t.Errorf("%q: got %v, want the form %s in it", address, err, k.form)
			}
		}
	}
}
