// Command filesvc runs the file service as one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"asset-registry/filesvc"
	"asset-registry/shared/command"
	"asset-registry/shared/config"
	"asset-registry/shared/daemon"
	"asset-registry/shared/keyring"
	"asset-registry/shared/private"
	"asset-registry/shared/probe"
	"asset-registry/shared/telemetry"
)

// settings has the settings of the command. They come from flags, environment variables or a file.
type settings struct {
	daemon.Process

	Addr    string `default:"127.0.0.1:8084" help:"Address to listen on."`
	Service flags  `embed:""`
}

// flags are the settings of the service, without the method Validate, which kong would call before the secret is read.
type flags filesvc.Config

func main() {
	if filesvc.IsDrawing(os.Args[1:]) {
		os.Exit(filesvc.Draw())
	}
	command.Main("filesvc", run, nil)
}

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == "health" {
		return probe.Ready(ctx, args[1])
	}
	s := settings{Process: daemon.Process{Name: "filesvc"}}
	if len(args) > 0 && args[0] == "copy" {
		return copyBytes(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == "draw" {
		return drawAgain(ctx, args[1:])
	}
	const help = "The file service of the asset registry. " +
		"\"filesvc health URL\" asks the /readyz at URL whether a service is ready. " +
		"\"filesvc check [FILE] [flags]\" checks settings, and prints what is in force and where it came from. " +
		"\"filesvc copy\" copies the bytes of all files to a bucket, or back, and \"filesvc draw\" lets pictures be " +
		"drawn again; their --help says more."
	if len(args) > 0 && args[0] == "check" {
		return config.Check(&s, "filesvc", "FILESVC", "", args[1:], os.Stdout)
	}
	if _, err := config.Parse(&s, "filesvc", help, "FILESVC", args); err != nil {
		return err
	}
	s.Places = []string{s.Service.Store, s.Service.Bytes}
	open := func(log *slog.Logger, t *telemetry.Telemetry) (daemon.Service, error) {
		c, err := s.config()
		if err != nil {
			return nil, err
		}
		c.Log, c.Telemetry = log, t
		return filesvc.New(ctx, c)
	}
	return daemon.Run(ctx, s.Addr, s.Process, open)
}

// Check implements config.Checker.
func (s settings) Check(warnings io.Writer) error {
	c, err := s.config()
	c.Log = slog.New(slog.DiscardHandler)
	return errors.Join(err, c.Validate(), private.Print(warnings, c.Store, c.Bytes))
}

// config returns the configuration of the service. The error is about the secret file.
func (s settings) config() (c filesvc.Config, err error) {
	c = filesvc.Config(s.Service)
	c.Draw = filesvc.DrawCommand()
	c.Secrets, err = keyring.ReadSetting(c.SecretFile)
	return c, err
}

// copying has the flags of the command `copy`.
type copying struct {
	Store      string `required:"" help:"Store of the metadata: file:PATH, or the assets' MongoDB URL."`
	SecretFile string `required:"" help:"File with the services' secret."`
	From       string `required:"" help:"Where the files are: a directory, or s3+https://HOST/BUCKET."`
	To         string `required:"" help:"Where they shall be."`
}

func copyBytes(ctx context.Context, args []string) error {
	var c copying
	const help = "Copy the bytes of all files, and compare each with its SHA-256. It may be repeated, and goes on " +
		"where it has ended. The last run needs the file services stopped."
	if _, err := config.Parse(&c, "filesvc copy", help, "FILESVC", args); err != nil {
		return err
	}
	secrets, err := keyring.Read(c.SecretFile)
	if err != nil {
		return err
	}
	done, err := filesvc.CopyBytes(ctx, filesvc.Copying{Store: c.Store, Secrets: secrets, From: c.From, To: c.To})
	if err != nil {
		return fmt.Errorf("%w; repeat the command to go on", err)
	}
	fmt.Printf("Copied and verified: %d files with %d bytes, and %d removals. %d files were there.\n",
		done.Files, done.Bytes, done.Removals, done.Present)
	return nil
}

// drawing has the flags of the command `draw`.
type drawing struct {
	Store      string   `required:"" help:"Store of the metadata: file:PATH, or the assets' MongoDB URL."`
	SecretFile string   `required:"" help:"File with the services' secret."`
	File       []string `placeholder:"ID" help:"Only the pictures of these files, also if none was found in them."`
}

func drawAgain(ctx context.Context, args []string) error {
	var d drawing
	const help = "Let the pictures be drawn again that were given up. A file service draws them when it starts. If the " +
		"store is a file, stop the file service first."
	if _, err := config.Parse(&d, "filesvc draw", help, "FILESVC", args); err != nil {
		return err
	}
	secrets, err := keyring.Read(d.SecretFile)
	if err != nil {
		return err
	}
	files, err := filesvc.DrawAgain(ctx, d.Store, secrets, d.File)
	if err == nil {
		fmt.Printf("The pictures of %d files are drawn when a file service starts.\n", files)
	}
	return err
}
