package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/cpu"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/internal/transformers"
)

func newDoctor() *cobra.Command {
	var self bool
	c := &cobra.Command{
		Use:   "doctor [ENGINE.py …]",
		Short: "what is installed, what is missing, and how to get it; --selftest runs both engines",
		Long: "doctor looks for what the engines need, and says what each can do: those of goparity, and files of your own.\n" +
			"Recorded runs are judged without any of it.\n" +
			"--selftest makes a tiny model, runs it in torch and in MAX, and compares the two dumps: every output\n" +
			"must agree.",
		RunE: func(cmd *cobra.Command, files []string) error {
			if self {
				return selftest(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			tw := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, c := range checks(cmd.Context(), files) {
				mark := "ok"
				if !c.ok {
					mark = "missing"
				}
				fmt.Fprintf(tw, "%s\t%s\t%s\n", c.name, mark, sanitize.Line(c.text))
			}
			return tw.Flush()
		},
	}
	c.Flags().BoolVar(&self, "selftest", false,
		"run both engines on a tiny model and compare them (a first compilation of MAX takes minutes)")
	return c
}

type check struct {
	name string
	ok   bool
	text string // what was found, or what it is needed for and how to get it
}

// checks looks at what replaying needs (Go alone) and at what running the engines needs besides.
func checks(ctx context.Context, files []string) []check {
	out := []check{{"parity", true, version()}}
	out = append(out, tool(ctx, "go", "runs the tests: https://go.dev/dl", "version"))
	out = append(out, tool(ctx, "gotestsum", "writes JUnit: go install gotest.tools/gotestsum@v1.13.0", "--version"))
	out = append(out, processor())
	out = append(out, python(ctx, files)...)
	out = append(out, caches()...)
	if o, err := transformers.Find("."); err != nil {
		out = append(out, check{"edited copy", false, err.Error()})
	} else if o != nil {
		out = append(out, check{"edited copy", true, o.String()})
	}
	ended, how := supervise.Daemons()
	out = append(out, check{"processes", ended, how})
	devices, err := engine.PickGPUs(ctx, engine.System(), os.Environ())
	if err != nil {
		return append(out, check{"gpu", false, err.Error()})
	}
	for _, d := range devices {
		out = append(out, check{"gpu", true, d.String()})
	}
	return out
}

// processor says whether MAX runs on this one.
func processor() check {
	switch {
	case runtime.GOARCH != "amd64":
		return check{"processor", true, fmt.Sprintf("%s, %d cores", runtime.GOARCH, runtime.NumCPU())}
	case !cpu.X86.HasAVX2:
		return check{"processor", false,
			"MAX needs AVX2, which this processor lacks: run the candidate on another machine"}
	}
	return check{"processor", true, fmt.Sprintf("AVX2, %d cores", runtime.NumCPU())}
}

// What MAX 26.7 is built for.
const (
	minGlibc  = "2.34"
	minPython = "3.10"
)

// probe asks the interpreter for all at once: it takes a second to start.
const probe = `import platform, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from goparity import engines
import json
print(json.dumps({"python": platform.python_version(), "glibc": platform.libc_ver()[1], "engines": json.loads(engines.table(sys.argv[2:]))}))`

// runner is an engine as its own table describes it.
type runner struct {
	Name, Does string
	Packages   []string // what it needs; the first is what it is known by
	Tasks      []string
	Paths      []string
	Records    []string
	Versions   map[string]string // of the packages that are installed
}

// python looks at the interpreter and the packages that the engines need.
func python(ctx context.Context, files []string) []check {
	var has struct {
		Python, Glibc string
		Engines       []runner
	}
	interpreter, err := engine.Interpreter(os.Getenv, ".")
	if err == nil {
		var text, folder string
		if folder, err = engine.Unpack(); err == nil {
			text, err = output(ctx, interpreter, append([]string{"-c", probe, folder}, files...)...)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", interpreter, err, text)
		} else if err = json.Unmarshal([]byte(text), &has); err != nil {
			err = fmt.Errorf("%s printed %.80q", interpreter, text)
		}
	}
	var out []check
	switch {
	case err != nil:
		out = append(out,
			check{"python", false, "runs the engines; recorded runs are judged without it: " + err.Error()})
	case !atLeast(has.Python, minPython):
		out = append(out,
			check{"python", false,
				fmt.Sprintf("%s is %s, the runners need %s or later", interpreter, has.Python, minPython)})
	default:
		out = append(out, check{"python", true, has.Python + ", " + interpreter})
	}
	if has.Glibc != "" {
		c := check{"glibc", atLeast(has.Glibc, minGlibc), has.Glibc}
		if !c.ok {
			c.text += ": MAX needs " + minGlibc + " or later: run the candidate on a newer system"
		}
		out = append(out, c)
	}
	for _, e := range has.Engines {
		out = append(out, e.check())
	}
	if has.Engines == nil { // there is no Python to ask
		for _, name := range slices.Sorted(maps.Keys(engine.Requirements)) {
			out = append(out, check{name, false, fmt.Sprintf("needs Python, and uv pip install %s", strings.Trim(fmt.Sprintf("%q", requirements(name)), "[]"))})
		}
	}
	return out
}

// requirements lists what an engine needs.
func requirements(name string) (out []string) {
	for line := range strings.Lines(engine.Requirements[name]) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// check says whether the packages of an engine are installed, in the versions that work, and what it can do.
func (r runner) check() check {
	var have, lacking []string
	for _, p := range r.Packages {
		v, want := r.Versions[p], requirement(r.Name, p)
		switch _, works, pinned := strings.Cut(want, "=="); {
		case v == "":
			lacking = append(lacking, fmt.Sprintf("%q", want))
		case pinned && v != works:
			have = append(have, fmt.Sprintf("%s %s (tested with %s)", p, v, works))
		default:
			have = append(have, p+" "+v)
		}
	}
	text := fmt.Sprintf("%s; %s; tasks: %s; paths: %s; records: tensors, %s", r.Does, strings.Join(have, ", "), strings.Join(r.Tasks, ", "),
		strings.Join(r.Paths, ", "), strings.Join(r.Records, ", "))
	if len(lacking) > 0 {
		text = fmt.Sprintf("%s: uv pip install %s", r.Does, strings.Join(lacking, " "))
	}
	return check{r.Name, len(lacking) == 0, text}
}

// requirement is the line of an engine's requirements for a package: "torch==2.15.0",
// "max[serve]==26.7.0".
func requirement(name, pkg string) string {
	for _, line := range requirements(name) {
		if strings.HasPrefix(line, pkg+"==") || strings.HasPrefix(line, pkg+"[") {
			return line
		}
	}
	return pkg
}

// atLeast compares versions by their first two numbers.
func atLeast(version, least string) bool {
	var v, l [2]int
	fmt.Sscanf(version, "%d.%d", &v[0], &v[1])
	fmt.Sscanf(least, "%d.%d", &l[0], &l[1])
	return slices.Compare(v[:], l[:]) >= 0
}

// caches lists the large folders of the engines.
func caches() []check {
	var out []check
	add := func(name, dir, what string) {
		out = append(out, check{name, true, fmt.Sprintf("%s, %d MiB%s", dir, folderSize(dir)>>20, what)})
	}
	if dir, err := engine.CompileCache(os.Getenv); err == nil {
		add("compile cache", dir, " (MODULAR_MAX_CACHE_DIR puts it elsewhere)")
	}
	if dir := checkpoint.HubCache(os.Getenv); dir != "" {
		add("hub cache", dir, " (HF_HOME puts it elsewhere)")
	}
	return out
}

// folderSize sums the files below a folder; what cannot be read counts as nothing.
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
