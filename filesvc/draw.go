package filesvc

import (
	"os"
	"slices"

	"asset-registry/filesvc/internal/picture"
)

// DrawCommand returns the command for Config.Draw by which a program starts itself. Its main
// function first calls Draw if IsDrawing says so. It returns nil if the program has no path.
func DrawCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, picture.Argument}
}

// IsDrawing tells whether a program was started with these arguments to draw a picture.
func IsDrawing(args []string) bool { return slices.Equal(args, []string{picture.Argument}) }

// Draw draws the picture that comes on standard input, and returns the exit code of the process.
func Draw() int { return picture.Child(os.Stdin, os.Stdout) }
