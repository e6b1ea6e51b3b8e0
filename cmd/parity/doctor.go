package main

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/cpu"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

func newDoctor() *cobra.Command {
	var self bool
	c := command("doctor", nil, func(cmd *cobra.Command, files []string) error {
		if self {
			return selftest(cmd)
		}
		var t table
		t.programs(cmd.Context())
		t.engines(cmd.Context(), files)
		t.devices(cmd.Context())
		return writeTable(cmd.OutOrStdout(), t)
	})
	c.Flags().BoolVar(&self, "selftest", false,
		"run both engines on a tiny model and compare them (a first compilation of MAX takes minutes)")
	return c
}

// table has a row for each thing that is looked for: what was found, or what it is needed for and how to get it.
type table [][]string

func (t *table) row(name string, ok bool, format string, args ...any) {
	mark := map[bool]string{true: "ok", false: "missing"}[ok]
	*t = append(*t, []string{name, mark, sanitize.Line(fmt.Sprintf(format, args...))})
}

// programs lists what judging needs, Go alone, and what is useful beside it.
func (t *table) programs(ctx context.Context) {
	t.row("parity", true, "%s", version())
	for _, tool := range [][]string{
		{"runs the tests: https://go.dev/dl", "go", "version"},
		{"writes JUnit: go install gotest.tools/gotestsum@v1.13.0", "gotestsum", "--version"},
	} {
		said, err := output(ctx, tool[1], tool[2])
		if err != nil {
			said = tool[0]
		}
		t.row(tool[1], err == nil, "%s", said)
	}
	ended, how := supervise.Daemons()
	t.row("processes", ended, "%s", how)
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
	Name, Does            string
	Packages              []string // what it needs; the first is what it is known by
	Tasks, Paths, Records []string
	Versions              map[string]string // of the packages that are installed
}

// engines looks at the interpreter and at what each engine needs.
func (t *table) engines(ctx context.Context, files []string) {
	var has struct {
		Python, Glibc string
		Engines       []runner
	}
	interpreter, err := engine.Interpreter(os.Getenv, ".")
	folder, failed := engine.Unpack()
	if err = cmp.Or(err, failed); err == nil {
		var text string
		if text, err = output(ctx, interpreter, append([]string{"-c", probe, folder}, files...)...); err == nil {
			err = json.Unmarshal([]byte(text), &has)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w: %.200s", interpreter, err, text)
		}
	}
	switch {
	case err != nil:
		t.row("python", false, "runs the engines; recorded runs are judged without it: %v", err)
	case !atLeast(has.Python, minPython):
		t.row("python", false, "%s is %s, the runners need %s or later", interpreter, has.Python, minPython)
	default:
		t.row("python", true, "%s, %s", has.Python, interpreter)
	}
	if has.Glibc != "" {
		t.row("glibc", atLeast(has.Glibc, minGlibc), "%s; MAX needs %s or later", has.Glibc, minGlibc)
	}
	for _, e := range has.Engines {
		e.list(t)
	}
	if has.Engines == nil { // there is no Python to ask
		for _, name := range slices.Sorted(maps.Keys(engine.Requirements)) {
			t.row(name, false, "needs Python, and uv pip install %s", strings.Trim(fmt.Sprintf("%q", requirements(name)), "[]"))
		}
	}
	if dir, err := engine.CompileCache(os.Getenv); err == nil {
		t.row("compile cache", true, "%s (MODULAR_MAX_CACHE_DIR puts it elsewhere)", dir)
	}
	if dir := checkpoint.HubCache(os.Getenv); dir != "" {
		t.row("hub cache", true, "%s (HF_HOME puts it elsewhere)", dir)
	}
	if o, err := engine.FindOverlay("."); err != nil {
		t.row("edited copy", false, "%v", err)
	} else if o != nil {
		t.row("edited copy", true, "%s", o)
	}
}

// list says whether the packages of an engine are installed, in the versions that work, and what it can do.
func (r runner) list(t *table) {
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
	if lacking != nil {
		t.row(r.Name, false, "%s: uv pip install %s", r.Does, strings.Join(lacking, " "))
		return
	}
	t.row(r.Name, true, "%s; %s; tasks: %s; paths: %s; records: tensors, %s", r.Does, strings.Join(have, ", "), strings.Join(r.Tasks, ", "),
		strings.Join(r.Paths, ", "), strings.Join(r.Records, ", "))
}

func requirements(name string) (out []string) {
	for line := range strings.Lines(engine.Requirements[name]) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

func requirement(name, pkg string) string {
	for _, line := range requirements(name) {
		if strings.HasPrefix(line, pkg+"==") || strings.HasPrefix(line, pkg+"[") {
			return line
		}
	}
	return pkg
}

func (t *table) devices(ctx context.Context) {
	t.row("processor", runtime.GOARCH != "amd64" || cpu.X86.HasAVX2, "%s, %d cores; on amd64 MAX needs AVX2", runtime.GOARCH, runtime.NumCPU())
	devices, err := engine.PickGPUs(ctx, os.Environ())
	if err != nil {
		t.row("gpu", false, "%v", err)
	}
	for _, d := range devices {
		t.row("gpu", true, "%s", d)
	}
}

// atLeast compares versions by their first two numbers.
func atLeast(version, least string) bool {
	var v, l [2]int
	fmt.Sscanf(version, "%d.%d", &v[0], &v[1])
	fmt.Sscanf(least, "%d.%d", &l[0], &l[1])
	return slices.Compare(v[:], l[:]) >= 0
}

// output runs a program and returns the first line that it prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	b, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	first, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return first, err
}

// minSelfPorts is how many outputs the two engines have in common at least: a block has four, in a prefill and a decode step.
const minSelfPorts = 4 * tinyLayers * 2

// selftest runs both dumpers on a tiny model, and they must agree: until then no comparison means anything.
func selftest(cmd *cobra.Command) error {
	dir, remove, err := supervise.TempDir("", "parity-selftest-")
	if err != nil {
		return err
	}
	defer remove()
	model, golden, actual := filepath.Join(dir, "model"), filepath.Join(dir, engine.Torch), filepath.Join(dir, engine.MAX)
	if err := tinyModel(model); err != nil {
		return fmt.Errorf("selftest: %w", err)
	}
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	for _, args := range [][]string{
		{engine.Torch, "--token-ids", "72,101,108,108,111,44,32", "--num-steps", "2", "-o", golden},
		{engine.MAX, "--follow", golden, "-o", actual},
	} {
		if code := run(ctx, append([]string{"run", "--model", model, "--engine"}, args...), stdout, stderr); code != exitPass {
			return fmt.Errorf("selftest: %s failed, see above: parity doctor lists what is missing, and the versions that work", args[0])
		}
	}
	f := inputFlags{Inputs: report.Inputs{Golden: golden, Actual: actual}}
	r, _, err := f.judge(ctx, stderr, "selftest")
	if err != nil {
		return err
	}
	return selfVerdict(r, stdout)
}

// selfVerdict wants that enough was compared, and passes.
func selfVerdict(r *report.Report, stdout io.Writer) error {
	const advice = "a dumper records the wrong thing, or an engine is of a version that this one does not know: " +
		"compare no models before this passes"
	switch {
	case r.Verdict != report.Pass:
		return fmt.Errorf("selftest: %s: %s", report.Headline(r), advice)
	case r.Coverage == nil || r.Coverage.Compared < minSelfPorts:
		return fmt.Errorf("selftest: the two dumps have less than %d outputs in common: %s", minSelfPorts, advice)
	}
	_, err := fmt.Fprintf(stdout, "selftest: %s\nselftest: ok\n", report.Headline(r))
	return err
}

// The tiny model: a Llama with random weights, of a size at which a run takes no time, and a tokenizer that makes one
// token of each byte. The last rows of its vocabulary have no token.
const (
	tinyVocab, tinyHidden, tinyMLP, tinyLayers, tinyHeads, tinyKV = 320, 64, 128, 4, 4, 2 // as in tiny/config.json
	tinyTokens                                                    = 3 + 256               // <s>, </s>, <pad>, and one for each byte
)

//go:embed tiny
var tiny embed.FS

// tinyModel writes the model's folder: config, tokenizer and weights. It is the same at each call.
func tinyModel(dir string) error {
	files, err := fs.Sub(tiny, "tiny")
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	weights, failed := tinyWeights()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "model.safetensors"), func(w io.Writer) error {
		return safetensors.Write(w, weights, map[string]string{"format": "pt"})
	})
}

func tinyWeights() (out []tensor.Named, err error) {
	random := rand.New(rand.NewPCG(1, 2))
	add := func(name string, rows, columns int) {
		values := make([]float32, rows*columns)
		shape := []int{rows, columns}
		scale, mean := 0.08, 0.0
		if rows == 1 { // a norm's
			shape, scale, mean = shape[1:], 0.1, 1
		}
		for i := range values {
			values[i] = float32(mean + scale*random.NormFloat64())
		}
		if name == "lm_head" {
			clear(values[tinyTokens*tinyHidden:]) // never chosen: of 259 logits around 0 one is above it
		}
		t, failed := tensor.Of(values, shape...)
		err = errors.Join(err, failed)
		out = append(out, tensor.Named{Name: name + ".weight", Tensor: t})
	}
	const kv = tinyHidden / tinyHeads * tinyKV
	add("model.embed_tokens", tinyVocab, tinyHidden)
	for i := range tinyLayers {
		for _, w := range []struct {
			name          string
			rows, columns int
		}{{"input_layernorm", 1, tinyHidden}, {"self_attn.q_proj", tinyHidden, tinyHidden}, {"self_attn.k_proj", kv, tinyHidden},
			{"self_attn.v_proj", kv, tinyHidden}, {"self_attn.o_proj", tinyHidden, tinyHidden}, {"post_attention_layernorm", 1, tinyHidden},
			{"mlp.gate_proj", tinyMLP, tinyHidden}, {"mlp.up_proj", tinyMLP, tinyHidden}, {"mlp.down_proj", tinyHidden, tinyMLP}} {
			add(fmt.Sprintf("model.layers.%d.%s", i, w.name), w.rows, w.columns)
		}
	}
	add("model.norm", 1, tinyHidden)
	add("lm_head", tinyVocab, tinyHidden)
	return out, err
}

func newTransformers() *cobra.Command {
	var force bool
	restore := command("restore", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return removeCopy(cmd.OutOrStdout(), force) })
	restore.Flags().BoolVar(&force, "force", false, "remove edited files too")
	return group("transformers", command("edit", cobra.MaximumNArgs(1), editCopy), command("status", cobra.NoArgs, copyStatus), restore)
}

func editCopy(cmd *cobra.Command, args []string) error {
	o, err := engine.FindOverlay(".")
	if err == nil && o == nil {
		o, err = makeCopy(cmd)
	}
	if err != nil {
		return err
	}
	files := []string{""}
	if len(args) > 0 {
		files = o.Lookup(args[0])
	}
	if len(files) == 0 {
		return usage("transformers edit: no file of transformers %s is called %q", o.Version, args[0])
	}
	for _, f := range files {
		fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(o.Package(), filepath.FromSlash(f)))
	}
	return nil
}

func makeCopy(cmd *cobra.Command) (*engine.Overlay, error) {
	python, err := engine.Interpreter(os.Getenv, ".")
	if err != nil {
		return nil, err
	}
	source, version, err := engine.InstalledTransformers(cmd.Context(), python)
	dir, wrong := engine.OverlayFolder(".")
	if err = cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	o, err := engine.MakeOverlay(dir, source, version)
	if err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "parity: copied transformers %s, %d files; live runs use the copy until parity transformers restore\n", version, len(o.Files))
	}
	return o, err
}

func copyStatus(cmd *cobra.Command, _ []string) error {
	o, err := engine.FindOverlay(".")
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if o == nil {
		_, err := fmt.Fprintln(w, "runs use the installed transformers")
		return err
	}
	fmt.Fprintf(w, "runs use the copy of transformers %s in %s\n", o.Version, o.Package())
	_, err = listChanges(w, o)
	return err
}

func listChanges(w io.Writer, o *engine.Overlay) (int, error) {
	changes, err := o.Changes()
	for _, line := range changes {
		fmt.Fprintln(w, line)
	}
	if err == nil && len(changes) == 0 {
		fmt.Fprintln(w, "nothing in it is changed")
	}
	return len(changes), err
}

// removeCopy removes one whose edits would be lost, or whose list is damaged, only by force.
func removeCopy(w io.Writer, force bool) error {
	o, err := engine.FindOverlay(".")
	switch {
	case err != nil && !force:
		return err
	case err == nil && o == nil:
		_, err := fmt.Fprintln(w, "there is no copy: runs use the installed transformers")
		return err
	case err == nil:
		if n, err := listChanges(w, o); !force && err != nil {
			return err
		} else if !force && n > 0 {
			return usage("transformers restore: %d edited files would be lost: --force removes them", n)
		}
	}
	dir, err := engine.OverlayFolder(".")
	if err == nil {
		err = engine.RemoveOverlay(dir)
	}
	if err == nil {
		_, err = fmt.Fprintln(w, "removed: runs use the installed transformers again")
	}
	return err
}
