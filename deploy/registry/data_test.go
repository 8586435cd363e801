package registry

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"asset-registry/shared/keyring"
)

func TestOpenData(t *testing.T) {
	secret := strings.Repeat("5", 64) + "\n"
	for name, c := range map[string]struct {
		files map[string]string // what lies in the directory; nil: there is none
		says  string            // of the refusal; "": it opens
	}{
		"no directory":                     {nil, ""},
		"an empty one":                     {map[string]string{}, ""},
		"killed before anything was whole": {map[string]string{"FORMAT.new123": "asset"}, ""},
		"killed before the secret":         {map[string]string{"FORMAT": format + "\n"}, ""},
		"killed amid the secret":           {map[string]string{"FORMAT": format + "\n", "secret.first.new123": "55"}, ""},
		"killed before the stores":         {map[string]string{"FORMAT": format + "\n", "secret.first": secret}, ""},
		"killed between the stores":        {map[string]string{"FORMAT": format + "\n", "secret.first": secret, "tokens.db": "x", "assets.db.new123": ""}, ""},
		"killed before the secret's name":  {map[string]string{"FORMAT": format + "\n", "secret.first": secret, "assets.db": "x", "tokens.db": "x"}, ""},
		"killed amid the secret's naming":  {map[string]string{"FORMAT": format + "\n", "secret.first": secret, "secret": secret, "assets.db": "x", "tokens.db": "x"}, ""},
		"stores that were lost":            {map[string]string{"FORMAT": format + "\n", "secret": secret}, "assets.db is missing"},
		"assets that were lost":            {map[string]string{"FORMAT": format + "\n", "secret": secret, "tokens.db": "x"}, "assets.db is missing"},
		"tokens that were lost":            {map[string]string{"FORMAT": format + "\n", "secret": secret, "assets.db": "x"}, "tokens.db is missing"},
		"assets that were emptied":         {map[string]string{"FORMAT": format + "\n", "secret": secret, "assets.db": "", "tokens.db": "x"}, "assets.db is empty"},
		"tokens that were emptied":         {map[string]string{"FORMAT": format + "\n", "secret": secret, "assets.db": "x", "tokens.db": ""}, "tokens.db is empty"},
		"a secret that tokens have lost":   {map[string]string{"FORMAT": format + "\n", "tokens.db": "x"}, "restore"},
		"in use before":                    {map[string]string{"FORMAT": format + "\n", "secret": secret, "assets.db": "x", "tokens.db": "x"}, ""},
		"of somebody else":                 {map[string]string{"letter.txt": "dear"}, "letter.txt"},
		"of a later registry":              {map[string]string{"FORMAT": "asset-registry data 2\n"}, "data 2"},
		"a secret that was lost":           {map[string]string{"FORMAT": format + "\n", "assets.db": "x"}, "restore"},
		"a secret that was cut off":        {map[string]string{"FORMAT": format + "\n", "secret": "5\n", "assets.db": "x", "tokens.db": "x"}, "at least 32"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "data")
			if c.files != nil {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := openData(dir)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want it to say %q", err, c.says)
				}
				for file, text := range c.files {
					if now, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(now) != text {
						t.Errorf("%s has become %q, %v", file, now, err)
					}
				}
				if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(c.files) {
					t.Errorf("the directory holds %v, %v", entries, err)
				}
				return
			}
			if err != nil || len(got) != 1 || len(got[0]) != 64 {
				t.Fatalf("got %d secrets, %v; want one of 64 bytes", len(got), err)
			}
			if again, err := openData(dir); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("opened again, the secret is another, or %v", err)
			}
			for _, name := range []string{assetsFile, tokensFile} { // as the services make them
				if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := finish(dir); err != nil {
				t.Fatal(err)
			}
			if again, err := openData(dir); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("opened once the first start was over, the secret is another, or %v", err)
			}
			if there, err := has(dir, firstSecretFile); there || err != nil {
				t.Errorf("%s is left: %v, %v", firstSecretFile, there, err)
			}
			if info, err := os.Stat(filepath.Join(dir, secretFile)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the secret may be read by others: %v, %v", info, err)
			}
		})
	}
}

func TestOpenDataByManyAtOnceFindsOneSecret(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "a", "data")
		secrets, errs := make([]keyring.Ring, 8), make([]error, 8)
		var opening sync.WaitGroup
		for i := range secrets {
			opening.Go(func() { secrets[i], errs[i] = openData(dir) })
		}
		opening.Wait()
		want, err := openData(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i := range secrets {
			if errs[i] != nil || !reflect.DeepEqual(secrets[i], want) {
				t.Fatalf("opening it got %v, and a secret that lasts: %v", errs[i], reflect.DeepEqual(secrets[i], want))
			}
		}
	}
}
