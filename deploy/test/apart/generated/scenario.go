//go:build generated

// Command generated runs the scenario of deploy/test/openapi/generators with a client that oapi-codegen has
// generated. The program consists of this file and the generated file, which is not committed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strings"

	_ "github.com/oapi-codegen/runtime" // both imports are needed by the generated file
	_ "go.yaml.in/yaml/v3"
)

// outcome is what the scenario prints (deploy/test/openapi).
type outcome struct {
	Created, Published, Owner, Quantity string
	Stale, Documents                    int
	Followed                            bool
}

func main() {
	got, err := scenario(context.Background(), os.Getenv("REGISTRY"))
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(got)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// asset is the asset to create. The quantity is sent as text, so that no digit is lost.
var asset = AssetInput{
	AssetType: new("bounce"), Title: new("Hall"), Description: new("one entrance"),
	Items: &[]ItemInput{{
		Description:         new("Hall"),
		Classification:      &ClassificationInput{Id: new("04121000-2"), Description: new("Hall")},
		Unit:                &UnitInput{Code: new("MTK")},
		Quantity:            new("240.50010"),
		Address:             &AddressInput{CountryName: new("Україна")},
		Location:            &LocationInput{Latitude: new(50.4501), Longitude: new(30.5234)},
		RegistrationDetails: &RegistrationDetailsInput{},
	}},
	Decisions: &[]DecisionInput{{DecisionDate: new("2026-11-20T12:00:00+02:00"), DecisionID: new("1637-10")}},
	AssetCustodian: &OrganizationInput{
		Name:         new("Fund"),
		Identifier:   &IdentifierInput{Scheme: new("UA-EDR"), Id: new("00032945")},
		Address:      &AddressInput{CountryName: new("Україна")},
		ContactPoint: &ContactPointInput{Name: new("Registrar"), Telephone: new("+380440000000")},
	},
}

// caller returns a client with an API key.
func caller(registry, key string) (*ClientWithResponses, error) {
	return NewClientWithResponses(registry, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.SetBasicAuth(key, "")
		return nil
	}))
}

// upload uploads a file, and returns its address and hash. The generated client cannot do this: the path is outside
// the API versions, so the OpenAPI document gives it an entry `servers`, which the generator ignores.
func upload(ctx context.Context, registry string) (address, hash string, err error) {
	root, _, _ := strings.Cut(registry, "/api/")
	files, err := caller(root, "broker")
	if err != nil {
		return "", "", err
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err1 := w.CreateFormFile("file", "plan.png")
	_, err2 := part.Write([]byte("the plan"))
	if err := errors.Join(err1, err2, w.Close()); err != nil {
		return "", "", err
	}
	sent, err := files.UploadFileWithBodyWithResponse(ctx, w.FormDataContentType(), &form)
	if err != nil || sent.JSON200 == nil {
		return "", "", fmt.Errorf("upload: %w: %s", err, sent.Body)
	}
	return sent.JSON200.Data.Url, sent.JSON200.Data.Hash, nil
}

// scenario creates an asset, changes it with its ETag, adds a document with a file, hands the asset over to another
// broker, and reads a page of the feed.
func scenario(ctx context.Context, registry string) (got outcome, err error) {
	broker, err1 := caller(registry, "broker")
	other, err2 := caller(registry, "broker3")
	if err := errors.Join(err1, err2); err != nil {
		return got, err
	}
	made, err := broker.CreateAssetWithResponse(ctx, nil, AssetInputBody{Data: asset})
	if err != nil || made.JSON201 == nil || made.JSON201.Access == nil {
		return got, fmt.Errorf("create: %w: %s", err, made.Body)
	}
	id, access := made.JSON201.Data.Id, made.JSON201.Access
	got.Created = string(made.JSON201.Data.Status)
	got.Quantity = (*made.JSON201.Data.Items)[0].Quantity.String()

	owner := &ChangeAssetParams{XAccessToken: &access.Token, IfMatch: new(made.HTTPResponse.Header.Get("ETag"))}
	publishing := AssetPatchBody{Data: AssetPatch{Status: new(AssetStatus("pending"))}}
	published, err1 := broker.ChangeAssetWithResponse(ctx, id, owner, publishing)
	late := AssetPatchBody{Data: AssetPatch{Description: new("none")}}
	stale, err2 := broker.ChangeAssetWithResponse(ctx, id, owner, late)
	address, hash, err := upload(ctx, registry)
	if err != nil {
		return got, err
	}
	plan := DocumentInput{
		DocumentType: new(DocumentDocumentType("illustration")), Title: new("Plan"), Url: &address, Hash: &hash,
		Format: new("image/png"),
	}
	token := &AddDocumentParams{XAccessToken: &access.Token}
	added, err3 := broker.AddDocumentWithResponse(ctx, id, token, DocumentInputBody{Data: plan})
	documents, err4 := broker.ListDocumentsWithResponse(ctx, id, &ListDocumentsParams{OptPretty: new("1")})
	transfer, err5 := other.CreateTransferWithResponse(ctx, nil, TransferInputBody{})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return got, err
	}
	if published.JSON200 == nil || stale.JSON412 == nil || added.JSON201 == nil || transfer.JSON201 == nil {
		return got, fmt.Errorf("got %s, %s, %s and %s", published.Body, stale.Body, added.Body, transfer.Body)
	}
	got.Published, got.Stale = string(published.JSON200.Data.Status), stale.StatusCode()
	got.Documents = len(documents.JSON200.Data)

	owned, err1 := other.TakeOverWithResponse(ctx, id, nil, OwnershipInputBody{
		Data: OwnershipInput{Id: transfer.JSON201.Data.Id, Transfer: access.Transfer},
	})
	page, err2 := broker.ListAssetsWithResponse(ctx, &ListAssetsParams{Limit: new(1000)})
	if err := errors.Join(err1, err2); err != nil {
		return got, err
	}
	got.Owner = owned.JSON200.Data.Owner
	got.Followed = slices.ContainsFunc(page.JSON200.Data, func(e Entry) bool { return e.Id == id })
	return got, nil
}
