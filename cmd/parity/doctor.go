package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/gpu"
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
	out = append(out, tool(ctx, "gotestsum", "writes JUnit: go install gotest.tools/gotestsum@v1.13.0", "--version"))
	python, err := engine.Interpreter(os.Getenv, ".")
	py := check{"python", false, "runs the engines; recorded runs are judged without it"}
	if err == nil {
		if py = tool(ctx, python, py.text, "--version"); py.ok {
			py.text += ", " + python
		}
		py.name = "python"
	} else {
		py.text += ": " + err.Error()
	}
	out = append(out, py)
	for _, pkg := range []struct{ name, need string }{
		{"torch", "makes goldens: uv pip install torch==2.15.0 transformers==5.12.1"},
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
	if dir, err := engine.CompileCache(os.Getenv); err == nil {
		out = append(out, check{"compile cache", true, fmt.Sprintf("%s, %d MiB", dir, folderSize(dir)>>20)})
	}
	device, err := gpu.Pick(ctx, gpu.System())
	if err != nil {
		return append(out, check{"gpu", false, err.Error()})
	}
	return append(out, check{"gpu", true, device.String()})
}

// folderSize sums the files below a folder; what cannot be read counts nothing.
func folderSize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
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
