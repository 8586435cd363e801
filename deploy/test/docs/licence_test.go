package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

// TestEveryClientNamesTheLicence checks that the package data of each client, and each OpenAPI document, have the name of
// the licence in LICENSE.
func TestEveryClientNamesTheLicence(t *testing.T) {
	for file, want := range map[string]string{
		"LICENSE":                              "                                 Apache License\n                           Version 2.0, January 2004\n",
		"clients/go/doc.go":                    "// SPDX-License-Identifier: Apache-2.0\n",
		"clients/python/pyproject.toml":        "\nlicense = {text = \"Apache-2.0\"}\n",
		"clients/typescript/package.json":      "\n  \"license\": \"Apache-2.0\",\n",
		"gateway/internal/openapi/2.4.json":    "\n      \"identifier\": \"Apache-2.0\"\n",
		"gateway/internal/openapi/2.5.json":    "\n      \"identifier\": \"Apache-2.0\"\n",
		"authsvc/internal/openapi/admin.json":  "\n      \"identifier\": \"Apache-2.0\"\n",
		"clients/typescript/package-lock.json": "\n      \"license\": \"Apache-2.0\",\n",
	} {
		text, err := os.ReadFile(filepath.Join(root, file))
		expect.OK(t, err)
		head, _, _ := strings.Cut(string(text), "ependencies") // the rest lists licences of dependencies
		if !strings.Contains(head, want) {
			t.Errorf("%s: got no %q, want it there", file, want)
		}
	}
}
