package command

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// File returns an error for a path that leads to a named pipe, a socket or a device: reading it could never end. A
// stream that the shell has opened is taken, such as /dev/stdin. If there is nothing at the path, opening it says so.
func File(path string) error {
	info, err := os.Stat(path)
	if err != nil || path == os.DevNull || path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") {
		return nil
	}
	for kind, name := range map[fs.FileMode]string{
		fs.ModeNamedPipe: "named pipe", fs.ModeSocket: "socket", fs.ModeDevice: "device",
	} {
		if info.Mode()&kind != 0 {
			return &fs.PathError{Op: "open", Path: path, Err: errors.New("it is a " + name + ": name a file")}
		}
	}
	return nil
}
