//go:build unix

package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

const completionHelp = `usage: lockkeeper completion bash|zsh

Prints a script for a shell that completes subcommands and flags.

  source <(lockkeeper completion bash)                           # in ~/.bashrc
  lockkeeper completion zsh > "${fpath[1]}/_lockkeeper"           # once; then restart zsh
`

// The scripts. The three %s are the subcommands, the kinds, and a case for each subcommand with its
// flags.
const (
	bashCompletion = `_lockkeeper() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="%s"
  elif [ "$before" = -kind ]; then
    words="%s"
  else
    case ${COMP_WORDS[1]} in
%s    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _lockkeeper lockkeeper
`
	zshCompletion = `#compdef lockkeeper
_lockkeeper() {
  if (( CURRENT == 2 )); then
    compadd -- %s
  elif [[ ${words[CURRENT-1]} == -kind ]]; then
    compadd -- %s
  else
    case ${words[2]} in
%s    esac
    _files
  fi
}
if [ "$funcstack[1]" = _lockkeeper ]; then
  _lockkeeper "$@"
else
  compdef _lockkeeper lockkeeper
fi
`
)

// complete is the subcommand completion.
func complete(args []string, env environment) int {
	templates := map[string][2]string{"bash": {bashCompletion, `words="%s"`}, "zsh": {zshCompletion, "compadd -- %s"}}
	if len(args) != 1 || templates[args[0]][0] == "" {
		out, code := env.stderr, exitUsage
		if len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			out, code = env.stdout, 0
		}
		fmt.Fprint(out, completionHelp)
		return code
	}
	template := templates[args[0]]
	names, cases := []string{"help"}, strings.Builder{}
	for _, c := range subcommands() {
		var words []string
		c.flags().VisitAll(func(f *flag.Flag) { words = append(words, "-"+f.Name) })
		if c.name == "completion" {
			words = append(words, "bash", "zsh")
		}
		if len(words) > 0 {
			fmt.Fprintf(&cases, "      %s) "+template[1]+" ;;\n", c.name, strings.Join(words, " "))
		}
		names = append(names, c.name)
	}
	all := strings.Join(names, " ")
	fmt.Fprintf(&cases, "      help) "+template[1]+" ;;\n", all)
	fmt.Fprintf(env.stdout, template[0], all, strings.Join(kindNames(), " "), cases.String())
	return 0
}
