package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "renew docs/commands.md and the files that scripts compare with")

// generated is the line of docs/commands.md below which the commands speak for themselves.
const generated = "<!-- below: parity COMMAND --help, renewed by go test ./cmd/parity -update -->\n"

// docs/commands.md has a line for each command, and what the commands say of themselves.
func TestCommandsDocument(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "commands.md")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	page := strings.ReplaceAll(string(data), "\r\n", "\n")
	hand, _, found := strings.Cut(page, generated)
	require.True(t, found, "%s lacks its line %s", path, generated)
	for _, c := range newRoot().Commands() {
		assert.Contains(t, hand, "\n| `"+c.CommandPath(), "the table of commands")
	}
	var b strings.Builder
	b.WriteString(hand + generated)
	describe(&b, newRoot())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		return
	}
	require.Equal(t, page, b.String(), "go test ./cmd/parity -update renews it")
}

// describe writes a section for each command that does something by itself.
func describe(b *strings.Builder, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.HasSubCommands() {
			describe(b, sub)
			continue
		}
		if sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		text := sub.Long
		if text == "" {
			text = sub.Short
		}
		fmt.Fprintf(b, "\n## %s\n\n```\n%s\n\n%s\n", sub.CommandPath(),
			strings.ReplaceAll(sub.UseLine(), " [flags]", ""), text)
		if flags := sub.LocalFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(b, "\n%s", flags)
		}
		b.WriteString("```\n")
	}
}
