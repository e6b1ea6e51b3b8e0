package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func newDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "what is installed, what is missing, and how to get it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, c := range checks(cmd.Context()) {
				mark := "ok"
				if !c.ok {
					mark = "missing"
				}
				fmt.Fprintf(tw, "%s\t%s\t%s\n", c.name, mark, c.text)
			}
			return tw.Flush()
		},
	}
}

type check struct {
	name string
	ok   bool
	text string // what was found, or what it is needed for and how to get it
}

// checks looks at what replaying needs (Go alone) and at what renewing goldens from the engines needs besides.
func checks(ctx context.Context) []check {
	out := []check{{"platform", true, runtime.GOOS + "/" + runtime.GOARCH + ", " + runtime.Version()}}
	out = append(out, tool(ctx, "go", "runs the tests: https://go.dev/dl", "version"))
	out = append(out, tool(ctx, "gotestsum", "writes JUnit: make tools, or go install gotest.tools/gotestsum@v1.13.0", "--version"))
	python := interpreter()
	py := tool(ctx, python, "runs the engines; recorded runs are judged without it", "--version")
	py.name = "python"
	out = append(out, py)
	for _, pkg := range []struct{ name, need string }{
		{"torch", "makes goldens: uv pip install torch==2.15.0"},
		{"max", `runs candidates: uv pip install "max[serve]==26.7.0"`},
	} {
		c := check{pkg.name, false, pkg.need}
		if py.ok {
			if v, err := output(ctx, python, "-c", "import importlib.metadata as m; print(m.version('"+pkg.name+"'))"); err == nil {
				c = check{pkg.name, true, v}
			}
		}
		out = append(out, c)
	}
	return append(out, tool(ctx, "nvidia-smi", "runs on an NVIDIA GPU; recorded runs are judged without it", "--query-gpu=name,driver_version", "--format=csv,noheader"))
}

// interpreter is the Python that an engine would run with: PARITY_PYTHON, a virtual environment here, python3.
func interpreter() string {
	if p := os.Getenv("PARITY_PYTHON"); p != "" {
		return p
	}
	for _, p := range []string{filepath.Join(".venv", "bin", "python"), filepath.Join(".venv", "Scripts", "python.exe")} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return "python3"
}

func tool(ctx context.Context, name, need string, args ...string) check {
	v, err := output(ctx, name, args...)
	if err != nil {
		return check{name, false, need}
	}
	return check{name, true, v}
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	b, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	first, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return first, err
}
