package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// certificates is the file with the trusted certificates of the machine, as Debian names it. Each image has a
// copy.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

// user is the user "nobody", as in deploy/images/Dockerfile.
const user = "65532:65532"

// entry is one file of an archive. If its name ends in "/", it is a directory.
type entry struct {
	name string
	mode int64
	text []byte
}

// archive returns a tar file. Its entries belong to root, and their time is the time of the release.
func (r *release) archive(entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Format: tar.FormatUSTAR, Name: e.name, Mode: e.mode, Size: int64(len(e.text)),
			ModTime: r.date}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// blob is a part of an image. Its checksum is its name (OCI image specification, "Descriptors").
type blob struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
	text      []byte
}

func newBlob(mediaType string, text []byte) blob {
	sum := sha256.Sum256(text)
	return blob{mediaType, "sha256:" + hex.EncodeToString(sum[:]), len(text), text}
}

// newJSON returns a blob with v as JSON.
func newJSON(mediaType string, v any) (blob, error) {
	text, err := json.Marshal(v)
	return newBlob(mediaType, text), err
}

func (b blob) path() string { return "blobs/sha256/" + strings.TrimPrefix(b.Digest, "sha256:") }

// layer returns the file system of an image: the program, at the same path in all images, and the files that it
// needs.
func (r *release) layer(program, list string) (blob, error) {
	files := []entry{
		{"etc/", 0o755, nil}, {"etc/ssl/", 0o755, nil}, {"etc/ssl/certs/", 0o755, nil},
		{strings.TrimPrefix(certificates, "/"), 0o644, nil}, {"sbom.cdx.json", 0o644, nil}, {"service", 0o755, nil},
	}
	for i, from := range []string{certificates, list, program} {
		var err error
		if files[i+3].text, err = os.ReadFile(from); err != nil {
			return blob{}, err
		}
	}
	text, err := r.archive(files...)
	return newBlob("application/vnd.oci.image.layer.v1.tar", text), err
}

// image writes an image as one file that Docker can load. The file is an OCI image layout. For Docker before
// version 25, it has an additional list.
func (r *release) image(name, architecture, program, list string) error {
	layer, err := r.layer(program, list)
	if err != nil {
		return fmt.Errorf("image of %s: %w", name, err)
	}
	const prefix = "org.opencontainers.image."
	config, err := newJSON("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": architecture, "os": "linux", "created": r.date.Format(time.RFC3339),
		"config": map[string]any{"User": user, "Entrypoint": []string{"/service"}, "Labels": map[string]string{
			prefix + "title": "asset registry: " + name, prefix + "version": r.version, prefix + "revision": r.revision,
		}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return err
	}
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest, err := newJSON(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []blob{layer},
	})
	if err != nil {
		return err
	}
	tag := "asset-registry/" + name + ":" + r.version
	index, err := newJSON("", map[string]any{"schemaVersion": 2, "manifests": []any{map[string]any{
		"mediaType": manifest.MediaType, "digest": manifest.Digest, "size": manifest.Size, "annotations": map[string]string{
			"io.containerd.image.name": "docker.io/" + tag, prefix + "ref.name": r.version,
		},
	}}})
	if err != nil {
		return err
	}
	former, err := newJSON("", []any{map[string]any{
		"Config": config.path(), "RepoTags": []string{tag}, "Layers": []string{layer.path()},
	}})
	if err != nil {
		return err
	}
	entries := []entry{{"blobs/", 0o755, nil}, {"blobs/sha256/", 0o755, nil}}
	for _, b := range []blob{config, layer, manifest} {
		entries = append(entries, entry{b.path(), 0o644, b.text})
	}
	entries = append(entries, entry{"index.json", 0o644, index.text}, entry{"manifest.json", 0o644, former.text},
		entry{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)})
	text, err := r.archive(entries...)
	if err != nil {
		return err
	}
	file := filepath.Join(r.out, "images", name+"-linux-"+architecture+".tar")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
