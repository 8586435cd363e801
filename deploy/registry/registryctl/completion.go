package registryctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"asset-registry/shared/adminapi"
)

// completionScript prints a script that makes a shell complete command lines. The script calls
// `registryctl __complete` with the words of the command line up to the cursor.
type completionScript struct {
	Bash bashScript `cmd:"" help:"Print the script for bash. To load it: source <(registryctl completion bash)"`
	Fish fishScript `cmd:"" help:"Print the script for fish. To load it: registryctl completion fish | source"`
	Zsh  zshScript  `cmd:"" help:"Print the script for zsh. To load it: source <(registryctl completion zsh)"`
}

type (
	bashScript struct{}
	fishScript struct{}
	zshScript  struct{}
)

// Run prints the script. The script does not use compgen -W, because that would run a $(...) in a candidate.
func (bashScript) Run(p *program) error {
	return p.script(`_registryctl() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("$1" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _registryctl registryctl
`)
}

// Run prints the script.
func (fishScript) Run(p *program) error {
	return p.script(`function __registryctl
  set -l words (commandline -opc)
  set -l found ($words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null)
  if count $found >/dev/null
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c registryctl -f -a '(__registryctl)'
`)
}

// Run prints the script.
func (zshScript) Run(p *program) error {
	return p.script(`#compdef registryctl
_registryctl() {
  local -a found
  found=("${(@f)$("$words[1]" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -z "$found" ]]; then
    _files
    return
  fi
  found=("${(@)found//:/\\:}")
  found=("${(@)found/$'\t'/:}")
  _describe registryctl found
}
if [[ "$funcstack[1]" == _registryctl ]]; then
  _registryctl "$@"
else
  compdef _registryctl registryctl
fi
`)
}

func (p *program) script(text string) error {
	_, err := io.WriteString(p.out, text)
	return err
}

// complete prints the words that can follow on a command line. Each has a line: the word, a tab and a
// description. If it knows no words, it prints nothing, and the shell offers file names.
type complete struct {
	Words []string `arg:"" optional:"" help:"Words of the command line. The last one is incomplete, or empty."`
}

// Run prints the candidates for the last word.
func (c complete) Run(ctx context.Context, p *program) error {
	if len(c.Words) == 0 {
		return nil
	}
	last := len(c.Words) - 1
	for _, candidate := range p.candidates(ctx, c.Words[:last], c.Words[last]) {
		if !strings.HasPrefix(candidate.word, c.Words[last]) {
			continue
		}
		if _, err := fmt.Fprintf(p.out, "%s\t%s\n", candidate.word, plain(candidate.description)); err != nil {
			return err
		}
	}
	return nil
}

type candidate struct{ word, description string }

// candidates returns the words that can follow the given ones. The argument `partial` is the beginning of the next
// word. It is only used to see whether the next word begins with a hyphen, as a flag does.
func (p *program) candidates(ctx context.Context, words []string, partial string) []candidate {
	var typed commands
	parser, err := newParser(&typed, io.Discard)
	if err != nil {
		return nil
	}
	line, err := kong.Trace(parser, words)
	if err != nil || line.Error != nil {
		return nil
	}
	if missingValue(line, words) != nil {
		return p.values(ctx, line, &typed, line.Path[len(line.Path)-1].Flag.Tag)
	}
	if strings.HasPrefix(partial, "-") {
		return flagNames(line.Flags())
	}
	node := parser.Model.Node
	if selected := line.Selected(); selected != nil {
		node = selected
	}
	if found := subcommands(node); found != nil {
		return found
	}
	if len(node.Positional) == 0 || node.Positional[0].Active {
		return nil
	}
	return p.values(ctx, line, &typed, node.Positional[0].Tag)
}

// values returns the values that the tag of a flag or an argument allows. The tag has these values, or the name of
// a list of the admin API. The argument `line` is the parsed command line. Before a call of the admin API, values
// applies this line, which sets the fields of *typed.
func (p *program) values(ctx context.Context, line *kong.Context, typed *commands, tag *kong.Tag) (found []candidate) {
	declared := tag.Get("complete")
	switch declared {
	case "":
		return nil
	case "keys", "brokers":
	default:
		for value := range strings.SplitSeq(declared, ",") {
			found = append(found, candidate{value, ""})
		}
		return found
	}
	if line.Reset() != nil { // Reset applies defaults and the environment
		return nil
	}
	if _, err := line.Apply(); err != nil {
		return nil
	}
	asked, ok := p.typed(*typed)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	if declared == "keys" {
		return offered(ctx, asked, "/keys", func(k adminapi.Key) candidate {
			return candidate{k.ID, k.Broker + " " + k.Name}
		})
	}
	return offered(ctx, asked, "/brokers", func(b adminapi.Broker) candidate { return candidate{b.Name, b.Title} })
}

func flagNames(flags []*kong.Flag) (found []candidate) {
	for _, flag := range flags {
		if !flag.Hidden {
			found = append(found, candidate{"--" + flag.Name, flag.Help})
		}
	}
	return found
}

func subcommands(node *kong.Node) (found []candidate) {
	for _, child := range node.Children {
		if !child.Hidden {
			found = append(found, candidate{child.Name, child.Help})
		}
	}
	return found
}

// completable matches ids that need no quotes in any shell.
var completable = regexp.MustCompile(`^[\pL\pN_.-]+$`)

// completionTimeout limits the time of the calls for one completion, because the user waits for it.
const completionTimeout = time.Second

// typed returns a program with the settings of the command line that is being completed. If that line has no --config,
// the config file of this process is read. If the settings are wrong, the result `ok` is false. typed returns no error,
// because a shell cannot show an error while it completes a line.
func (p *program) typed(line commands) (asked *program, ok bool) {
	line.Config, line.Output = cmp.Or(line.Config, p.config), p.output
	asked = &program{}
	return asked, asked.load(line) == nil
}

// offered returns the entries of a list of the admin API that need no quotes in a shell, or nil if it does not answer.
func offered[T any](ctx context.Context, p *program, path string, as func(T) candidate) (found []candidate) {
	for entry, err := range all[T](ctx, p, path, url.Values{}) {
		if err != nil {
			return nil
		}
		if c := as(entry); completable.MatchString(c.word) {
			found = append(found, c)
		}
	}
	return found
}
