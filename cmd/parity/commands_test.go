package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/updateflag"
)

var updateText = flag.Bool("update-text", false, "renew docs/commands.md")

// docs/commands.md is what the commands say of themselves.
func TestCommandsDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The commands\n\nWhat `parity COMMAND --help` says. `go test ./cmd/parity -update-text` renews this page.\n\n" +
		"Exit codes: 0 pass, 1 mismatch, 2 usage, 3 nothing could be compared or the infrastructure failed.\n")
	describe(&b, newRoot())
	path := filepath.Join("..", "..", "docs", "commands.md")
	if *updateText || updateflag.Set() {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./cmd/parity -update-text writes it")
	require.Equal(t, strings.ReplaceAll(string(data), "\r\n", "\n"), b.String(), "go test ./cmd/parity -update-text renews it")
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
		fmt.Fprintf(b, "\n## %s\n\n```\n%s\n\n%s\n", sub.CommandPath(), strings.ReplaceAll(sub.UseLine(), " [flags]", ""), text)
		if flags := sub.LocalFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(b, "\n%s", flags)
		}
		b.WriteString("```\n")
	}
}
