package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/toy"
)

// generated is the line of docs/commands.md below which the commands speak for themselves.
const generated = "<!-- below: the flags of each command, renewed by go test ./cmd/parity -update -->\n"

// docs/commands.md has a line for each command, and what the commands say of themselves.
func TestCommandsDocument(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "commands.md")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	page := strings.ReplaceAll(string(data), "\r\n", "\n")
	hand, _, found := strings.Cut(page, generated)
	require.True(t, found, "%s lacks its line %s", path, generated)
	for _, c := range newRoot().Commands() {
		if c.Hidden {
			continue
		}
		assert.Contains(t, hand, "\n| `"+c.CommandPath(), "the table of commands")
	}
	var b strings.Builder
	b.WriteString(hand + generated)
	describe(&b, newRoot())
	if *toy.Update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		return
	}
	require.Equal(t, page, b.String(), "go test ./cmd/parity -update renews it")
}

// describe writes the flags that several commands have, and a section for each command that does
// something by itself. What commands say of themselves at length is left to --help.
func describe(b *strings.Builder, root *cobra.Command) {
	commands := leaves(root)
	often := map[string]int{}
	said := func(f *pflag.Flag) string { return f.Name + " " + f.Usage + " " + f.DefValue }
	for _, c := range commands {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { often[said(f)]++ })
	}
	shared, rest := pflag.NewFlagSet("", pflag.ContinueOnError), &strings.Builder{}
	for _, c := range commands {
		own, others := pflag.NewFlagSet("", pflag.ContinueOnError), []string(nil)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "help" || f.Hidden:
			case often[said(f)] < 2:
				own.AddFlag(f)
			default:
				others = append(others, "--"+f.Name)
				if shared.Lookup(f.Name) == nil {
					shared.AddFlag(f)
				}
			}
		})
		if !own.HasFlags() && others == nil {
			continue // the table says all of it
		}
		fmt.Fprintf(rest, "\n## %s\n\n```\n%s\n", c.CommandPath(), strings.ReplaceAll(c.UseLine(), " [flags]", ""))
		if usages := own.FlagUsages(); usages != "" {
			fmt.Fprintf(rest, "\n%s", usages)
		}
		if len(others) > 0 {
			fmt.Fprintf(rest, "\n      and %s\n", strings.Join(others, ", "))
		}
		rest.WriteString("```\n")
	}
	fmt.Fprintf(b, "\n## Flags of several commands\n\n```\n%s```\n%s", shared.FlagUsages(), rest)
}

// leaves are the commands that do something by themselves.
func leaves(c *cobra.Command) (all []*cobra.Command) {
	for _, sub := range c.Commands() {
		switch {
		case sub.HasSubCommands():
			all = append(all, leaves(sub)...)
		case !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion":
			all = append(all, sub)
		}
	}
	return all
}
