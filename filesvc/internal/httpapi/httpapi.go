// Package httpapi is the HTTP side of the file service. It has the interface of the document service in the systems
// from which this API comes. It also answers the claims of the asset service (docs/files.md).
package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"asset-registry/filesvc/internal/file"
	"asset-registry/shared/fault"
	"asset-registry/shared/filelink"
	"asset-registry/shared/filesapi"
	"asset-registry/shared/httpserver"
	"asset-registry/shared/identity"
	"asset-registry/shared/routes"
)

// Config configures an API. All fields except Base and MayServe are required.
type Config struct {
	Files *file.Service
	Base  filelink.Base // public address of the registry; "": uploads are refused
	Links *filelink.Signer
	Now   func() time.Time
	Log   *slog.Logger // for removals

	// MayServe returns a fault if a mirror must not serve a file now. Nil: this is not a mirror. A mirror has
	// only the routes that read without a key.
	MayServe func(ctx context.Context, f file.File) error

	// Documents returns versions of the documents of an asset, as a JSON list that has the newest version of a document
	// last, or a fault. The argument `caller` is a name for package fair.
	Documents func(ctx context.Context, caller, asset string) ([]byte, error)
}

// API answers requests. It is safe for concurrent use.
type API struct {
	Config
	up, down httpserver.Pace
}

// New returns an API.
func New(c Config) *API { return &API{c, httpserver.UploadPace, httpserver.DownloadPace} }

// Route adds the routes to an engine.
func (a *API) Route(engine *gin.Engine, signer *identity.Signer) {
	r := engine.Group("/", httpserver.Identify(signer))
	for _, of := range routes.Files() {
		if a.MayServe != nil && (of.Key || of.Class == routes.Write) {
			continue
		}
		r.Handle(of.Method, of.Pattern, httpserver.Handle(a.handler(of)))
	}
	if a.MayServe != nil {
		return
	}
	r.POST(filesapi.ClaimPath+":file", httpserver.Handle(a.claim))
	r.POST(filesapi.FormPath, httpserver.Handle(a.document))
}

// handler returns the handler of a route of package routes.
func (a *API) handler(of routes.Route) func(*gin.Context) error {
	if of.Method == http.MethodDelete {
		return a.remove
	}
	switch of.Pattern {
	case routes.RegisterFile:
		return a.register
	case routes.UploadFile:
		return a.add
	case routes.UploadFile + "/:file":
		return a.upload
	case routes.GetFile:
		return a.list
	case routes.RemovedFiles:
		return a.listRemoved
	case routes.GetFile + "/:file":
		return a.get
	case routes.Picture:
		return a.picture
	case routes.Archive:
		return a.archive
	default:
		panic("filesvc: no handler for " + of.Pattern)
	}
}

// TimeoutOf returns the time limit of a request by its route; 0 means the general limit. The transfer of a file
// has no limit, but its client must keep a minimum rate.
func TimeoutOf(c *gin.Context) time.Duration {
	if path := c.FullPath(); routes.IsTransfer(c.Request.Method, path) || path == filesapi.FormPath {
		return httpserver.Unlimited
	}
	return 0
}

// mayWrite refuses a caller without an API key. It refuses every caller if the registry does not know its own public
// address.
func (a *API) mayWrite(c *gin.Context) error {
	if httpserver.Caller(c).IsAnonymous() {
		return fault.New(fault.Unauthorized, fault.Header, "Authorization", "An API key is needed.")
	}
	if a.Base == "" {
		return fault.New(fault.Unavailable, fault.URL, "files",
			"The registry takes no files, because it does not know its public address; the operator sets --base-url.")
	}
	return nil
}

// register answers POST /register.
func (a *API) register(c *gin.Context) error {
	if err := a.mayWrite(c); err != nil {
		return err
	}
	data, err := readRegistration(c.Request)
	if err != nil {
		return err
	}
	md5, err := parseHash(data)
	if err != nil {
		return err
	}
	f, err := a.Files.Register(c.Request.Context(), httpserver.Caller(c), md5)
	if err != nil {
		return err
	}
	uploadURL := a.Base.UploadAddress(f.ID) + "?" + a.Links.Upload(f.ID).Encode()
	if data["url"], err = json.Marshal(a.bound(f)); err != nil {
		return err
	}
	c.Header("Location", uploadURL)
	return a.answer(c, http.StatusCreated, gin.H{"data": data, "upload_url": uploadURL})
}

// bound returns the signed address of a file. With this address, a document of any broker may name the file.
func (a *API) bound(f file.File) string {
	return a.Base.Address(f.ID) + "?" + a.Links.Bind(f.ID, f.MD5).Encode()
}

// add answers POST /upload.
func (a *API) add(c *gin.Context) error {
	if err := a.mayWrite(c); err != nil {
		return err
	}
	return a.receive(c, func(u file.Upload) (file.File, error) {
		return a.Files.Add(c.Request.Context(), httpserver.Caller(c), u)
	})
}

// upload answers POST /upload/:file.
func (a *API) upload(c *gin.Context) error {
	if err := a.mayWrite(c); err != nil {
		return err
	}
	if err := a.Links.CheckUpload(c.Param("file"), c.Request.URL.Query()); err != nil {
		return err
	}
	return a.receive(c, func(u file.Upload) (file.File, error) {
		return a.Files.Upload(c.Request.Context(), httpserver.Caller(c), c.Param("file"), u)
	})
}

// document answers POST of filesapi.FormPath. It stores the file of a form, and returns a document that has the
// form's fields and names the file.
func (a *API) document(c *gin.Context) error {
	if err := a.mayWrite(c); err != nil {
		return err
	}
	form, err := openForm(c.Request, httpserver.NewReceiver(c.Writer, c.Request.Body, a.up))
	if err != nil {
		return err
	}
	form.fields = map[string]json.RawMessage{}
	f, err := store(form, func(u file.Upload) (file.File, error) {
		return a.Files.Add(c.Request.Context(), httpserver.Caller(c), u)
	})
	if err != nil {
		return err
	}
	document := map[string]any{"title": f.Title, "format": format(f)}
	for name, value := range form.fields {
		if !isAbsent(name, value) {
			document[name] = value
		}
	}
	document["url"], document["hash"] = a.bound(f), hashType+f.MD5
	return a.answer(c, http.StatusOK, gin.H{"data": document})
}

// isAbsent reports whether the file of a form stands for this field: an empty title, or a format that is no media type.
func isAbsent(name string, value json.RawMessage) bool {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return false
	}
	return name == "title" && strings.TrimSpace(text) == "" || name == "format" && mediaType(text) == ""
}

// store takes the file from a form, and stores it with the given function.
func store(form *form, by func(file.Upload) (file.File, error)) (file.File, error) {
	u, err := form.file()
	if err != nil {
		return file.File{}, err
	}
	f, err := by(u)
	if err != nil {
		return file.File{}, bodyFault(err)
	}
	return f, nil
}

// receive takes the file from a form, stores it with the given function, and answers with the stored file.
func (a *API) receive(c *gin.Context, by func(file.Upload) (file.File, error)) error {
	form, err := openForm(c.Request, httpserver.NewReceiver(c.Writer, c.Request.Body, a.up))
	if err != nil {
		return err
	}
	f, err := store(form, by)
	if err != nil {
		return err
	}
	getURL := a.Base.Address(f.ID) + "?" + a.Links.Read(f.ID, a.Now()).Encode()
	c.Header("Location", getURL)
	return a.answer(c, http.StatusOK, gin.H{"get_url": getURL, "data": gin.H{
		"url": a.bound(f), "hash": hashType + f.MD5, "format": format(f), "title": f.Title,
	}})
}

// remove answers DELETE /get/:file, by which an administrator takes a file down.
func (a *API) remove(c *gin.Context) error {
	by, reason := httpserver.Caller(c), c.Query("reason")
	f, err := a.Files.Remove(c.Request.Context(), by, c.Param("file"), reason)
	if err != nil {
		return err
	}
	a.Log.Warn("a file was removed", "file", f.ID, "broker", f.Broker, "bytes", f.Size, "sha256", f.SHA256,
		"by", by.KeyID, "reason", f.Reason)
	return a.answer(c, http.StatusOK, gin.H{"data": gin.H{
		"id": f.ID, "sha256": f.SHA256, "size": f.Size, "removed_by": f.RemovedBy, "reason": f.Reason,
	}})
}

// claim answers the request of another service to claim a file.
func (a *API) claim(c *gin.Context) error {
	if httpserver.Caller(c).Role != identity.Service {
		return fault.New(fault.Forbidden, fault.URL, "permission", "Forbidden: only services claim files.")
	}
	var in filesapi.Claim
	if err := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, maxField)).Decode(&in); err != nil {
		return fault.New(fault.Invalid, fault.Body, "data", "The body must be a claim in JSON.")
	}
	f, err := a.Files.Claim(c.Request.Context(), c.Param("file"), file.Claim(in))
	if err != nil {
		return err
	}
	return a.answer(c, http.StatusOK, filesapi.Claimed{SHA256: f.SHA256, Size: f.Size})
}

// answer writes JSON that no cache may store, because it may have signatures.
func (a *API) answer(c *gin.Context, status int, value any) error {
	c.Header("Cache-Control", "no-store")
	return httpserver.JSON(c, status, value)
}
