package httpclient

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"asset-registry/shared/testing/expect"
)

func TestNoRedirectIsFollowed(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		here := httptest.NewServer(http.RedirectHandler(other.URL, status))
		resp, err := New(nil).Get(here.URL)
		expect.OK(t, err)
		resp.Body.Close()
		here.Close()
		if resp.StatusCode != status || asked != 0 {
			t.Errorf("got %d, and %d requests to the other server; want %d and none", resp.StatusCode, asked, status)
		}
	}
}

// TestEveryClientIsMadeHere reads the code of the product. Only this package and package client may make an
// http.Client. Package client makes its own, because other programs import it, so it is not allowed to depend on this
// package.
func TestEveryClientIsMadeHere(t *testing.T) {
	found := 0
	for _, module := range []string{"assetsvc", "authsvc", "clients", "deploy/registry", "gateway", "searchsvc", "shared"} {
		root := filepath.Join("..", "..", module)
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			found++
			for _, use := range usesOf(t, path) {
				mayMake := strings.HasSuffix(path, "httpclient/httpclient.go") || strings.HasSuffix(path, "clients/go/client.go")
				expect.ErrorIf(t, !mayMake, "%s: got %s, which follows redirects; want httpclient.New", path, use)
			}
			return nil
		})
		expect.OK(t, err)
	}
	expect.ErrorIf(t, found < 100, "got %d files, want at least 100: the product's files", found)
}

// usesOf returns the names in package net/http with which a file makes or uses an HTTP client, such as "http.Get".
func usesOf(t *testing.T, path string) (uses []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	expect.OK(t, err)
	making := []string{"Client", "DefaultClient", "Get", "Head", "Post", "PostForm"}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			uses = append(uses, nameOf(n.Type, making[:1])...)
		case *ast.CallExpr:
			uses = append(uses, nameOf(n.Fun, making[2:])...)
		case *ast.SelectorExpr:
			uses = append(uses, nameOf(n, making[1:2])...)
		}
		return true
	})
	return uses
}

// nameOf returns a list with the name that an expression uses from package net/http, such as "http.Get". The list is
// empty if the expression is not such a name, or if the argument `names` lacks the name.
func nameOf(e ast.Expr, names []string) []string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, s.Sel.Name) {
		return nil
	}
	if from, ok := s.X.(*ast.Ident); ok && from.Name == "http" {
		return []string{"http." + s.Sel.Name}
	}
	return nil
}
