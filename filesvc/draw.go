package filesvc

import (
	"os"
	"slices"

	"asset-registry/filesvc/internal/picture"
)

// DrawCommand returns the command for Config.Draw with which a program starts itself as a child. The program's
// main function must first check IsDrawing, and call Draw if it returns true. DrawCommand returns nil if the
// path of the program is not known.
func DrawCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, picture.Argument}
}

// IsDrawing reports whether a program was started with these arguments in order to draw a picture.
func IsDrawing(args []string) bool { return slices.Equal(args, []string{picture.Argument}) }

// Draw draws the picture on standard input, writes the result to standard output, and returns the exit code of
// the process.
func Draw() int { return picture.Child(os.Stdin, os.Stdout) }
