package ukrainian

import (
	"github.com/blevesearch/snowballstem"
	snowball "github.com/blevesearch/snowballstem/english"
)

// english returns the stem of an English word, by the algorithm of Snowball, which bleve
// uses for English.
func english(word string) string {
	env := snowballstem.NewEnv(word)
	snowball.Stem(env)
	return env.Current()
}
