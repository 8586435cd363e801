package main

import (
	"context"
	"fmt"

	"asset-registry/deploy/registry"
)

type files struct {
	Move moveFiles `cmd:"" help:"Copy the files of a stopped registry to a bucket, or back, and use them there."`
	Draw drawFiles `cmd:"" help:"Let the pictures of a stopped registry be drawn again that were given up."`
}

type moveFiles struct {
	Data string `default:"./data" help:"Data directory."`
	To   string `required:"" placeholder:"s3+https://HOST/BUCKET" help:"Bucket, or directory for the data directory."`
}

// directory is the target that means the data directory itself.
const directory = "directory"

func (m moveFiles) run(ctx context.Context) error {
	bucket := m.To
	if bucket == directory {
		bucket = ""
	}
	done, from, to, err := registry.MoveFiles(ctx, m.Data, bucket)
	if err != nil {
		return fmt.Errorf("%w; the registry still uses the files where they were; repeat the command to go on", err)
	}
	fmt.Printf("Copied and verified: %d files with %d bytes, and %d removals. %d files were there.\n"+
		"The registry uses them in %s.\n", done.Files, done.Bytes, done.Removals, done.Present, to)
	if from != to {
		fmt.Printf("Those in %s may be removed.\n", from)
	}
	return nil
}

type drawFiles struct {
	Data string   `default:"./data" help:"Data directory."`
	File []string `placeholder:"ID" help:"Only the pictures of these files, also if none was found in them."`
}

func (d drawFiles) run(ctx context.Context) error {
	files, err := registry.DrawFiles(ctx, d.Data, d.File)
	if err == nil {
		fmt.Printf("The pictures of %d files are drawn when the registry starts.\n", files)
	}
	return err
}
