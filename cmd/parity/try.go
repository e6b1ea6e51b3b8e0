package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/foreign"
	"github.com/goparity/goparity/internal/judge"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/secret"
	"github.com/goparity/goparity/internal/setting"
	"github.com/goparity/goparity/internal/supervise"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/npy"
)

//go:embed try.py
var tryScript []byte

type tryFlags struct {
	inputFlags
	layer, port, caseName, step string
}

func newTry() *cobra.Command {
	var f tryFlags
	c := &cobra.Command{
		Use:   "try --layer L fix.py --golden A --actual B",
		Short: "how well a calculation of your own fits the candidate and the golden",
		Long: "try calls predict(inputs, run) of a Python file with numpy arrays. inputs are those of the layer, by\n" +
			"port (\"input_0\"); run has the tensors of the layer, of what is inside it and of its siblings, by label\n" +
			"(\"model.norm-output\"); run.weights and run.config are what --weights and --config give. It is called\n" +
			"with the candidate's tensors, to see whether it explains what the candidate has, and with the golden\n" +
			"ones, to see whether it is right.\n\n" +
			"exit codes: 0 it explains the candidate or is right, 1 it does neither",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.Golden == "" || f.Actual == "":
				return usage("try: --golden and --actual are missing: the two dumps")
			case f.layer == "":
				return usage("try: --layer is missing: the layer to calculate")
			}
			if st, err := os.Stat(args[0]); err != nil {
				return usage("try: %v", err)
			} else if st.IsDir() {
				return usage("try: %s is a folder: name the Python file with predict(inputs, run)", args[0])
			}
			return f.try(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := c.Flags()
	f.both(c, "the layer must match this `pattern`, or be in one that does; may be repeated")
	f.model(c)
	fl.StringVar(&f.layer, "layer", "", "the `layer` to calculate, or the end of its name")
	fl.StringVar(&f.port, "port", "", "which output of it (default: the first)")
	fl.StringVar(&f.caseName, "case", "", "only this case (default: all)")
	fl.StringVar(&f.step, "step", "", "only this step (default: all)")
	return c
}

func (f *tryFlags) try(ctx context.Context, file string, stdout, stderr io.Writer) error {
	f.diagnose = setting.DiagnoseOff
	return f.compare(ctx, stderr, func(c compared) error {
		trials, err := c.Trials(f.layer, f.port)
		if err != nil {
			return usage("try: %v", err)
		}
		weights, config, err := c.evidence()
		if err != nil {
			return err
		}
		tried, good := 0, 0
		for _, t := range trials {
			if f.caseName != "" && t.Case != f.caseName || f.step != "" && t.Step != f.step {
				continue
			}
			fits, err := tryOne(ctx, file, t, weights, config, stdout)
			if err != nil {
				return err
			}
			tried++
			if fits.Proven || fits.Right {
				good++
			}
		}
		switch {
		case tried == 0:
			return usage("try: there is no case %q step %q", cmp.Or(f.caseName, "*"), cmp.Or(f.step, "*"))
		case good < tried:
			return &exitError{code: exitMismatch}
		}
		return nil
	})
}

// tryJob is what try.py is told.
type tryJob struct {
	File    string            `json:"file"`
	Sides   []trySide         `json:"sides"`
	Weights map[string]string `json:"weights"`
	Config  checkpoint.Config `json:"config"`
}

type trySide struct {
	Files  map[string]string `json:"files"`  // by label
	Inputs map[string]string `json:"inputs"` // port → label
	Out    string            `json:"out"`
}

// tryOne runs the file on one forward pass and prints how it fits.
func tryOne(ctx context.Context, file string, t *judge.Trial, weights checkpoint.Weights, config checkpoint.Config,
	stdout io.Writer) (f diagnose.Fits, err error) {
	dir, remove, err := supervise.TempDir("", "parity-try-")
	if err != nil {
		return f, err
	}
	defer remove()
	job := tryJob{File: file, Weights: map[string]string{}, Config: config}
	w := &npyFolder{dir: dir, names: map[*tensor.Tensor]string{}}
	for key, x := range weights {
		if near(key, t.Layer) {
			if job.Weights[key], err = w.add(x); err != nil {
				return f, err
			}
		}
	}
	for i, run := range []map[string]*tensor.Tensor{t.ActualRun, t.GoldenRun} {
		side := trySide{Files: map[string]string{}, Inputs: map[string]string{},
			Out: filepath.Join(dir, "out"+strconv.Itoa(i)+".npy")}
		for label, x := range run {
			if side.Files[label], err = w.add(x); err != nil {
				return f, err
			}
		}
		for port := range t.Inputs(run) {
			side.Inputs[port] = t.Layer + "-" + port
		}
		job.Sides = append(job.Sides, side)
	}
	if err := runTry(ctx, dir, job, stdout); err != nil {
		return f, err
	}
	var out []*tensor.Tensor
	for _, side := range job.Sides {
		made, err := npy.Open(side.Out)
		if err != nil {
			return f, fmt.Errorf("%s left no result: %w", file, err)
		}
		defer made.Close()
		out = append(out, made.Tensors[0].Tensor)
	}
	if f, err = t.Judge(out[0], out[1]); err != nil {
		return f, fmt.Errorf("%s: %w", file, err)
	}
	where := t.Layer + " " + t.Port.Port
	for _, part := range []string{t.Case, t.Step} {
		if part != "" {
			where += ", " + part
		}
	}
	fmt.Fprintf(stdout, "%s: the candidate is off the golden by %.2e\n", where, f.Between)
	fmt.Fprintf(stdout, "  from the candidate's inputs  off the candidate by %.2e: %s\n", f.Candidate,
		word(f.Proven, "it explains the candidate", "it does not explain the candidate"))
	fmt.Fprintf(stdout, "  from the golden inputs       off the golden by %.2e: %s\n", f.Golden,
		word(f.Right, "it is right", "it is not what the reference does"))
	return f, nil
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// near reports whether a weight belongs to a layer, or to one next to or inside it: their modules
// have the same parent, whatever stands before it.
func near(key, layer string) bool {
	layer = label.Name(layer)
	for parent := cmp.Or(label.Parent(layer), layer); parent != ""; {
		if strings.HasPrefix(key, parent+".") || strings.Contains(key, "."+parent+".") {
			return true
		}
		_, rest, ok := strings.Cut(parent, ".")
		if !ok || !strings.Contains(rest, ".") {
			return false
		}
		parent = rest
	}
	return false
}

// npyFolder writes each tensor once, in types that numpy has.
type npyFolder struct {
	dir   string
	names map[*tensor.Tensor]string
}

func (w *npyFolder) add(t *tensor.Tensor) (string, error) {
	if name := w.names[t]; name != "" {
		return name, nil
	}
	name := filepath.Join(w.dir, strconv.Itoa(len(w.names))+".npy")
	w.names[t] = name
	if d := t.DType(); d == tensor.BF16 || d.IsFloat() && d.Size() == 1 {
		values := make([]float64, t.Len())
		t.Float64s(values, 0)
		wide := make([]float32, len(values))
		for i, v := range values {
			wide[i] = float32(v)
		}
		var err error
		if t, err = tensor.Of(wide, t.Shape()...); err != nil {
			return "", err
		}
	}
	return name, writeFile(name, func(f io.Writer) error { return npy.Write(f, t) })
}

// runTry runs try.py under supervision; what the user's file prints is shown.
func runTry(ctx context.Context, dir string, job tryJob, stdout io.Writer) error {
	python, err := engine.Interpreter(os.Getenv, ".")
	if err != nil {
		return err
	}
	script, jobFile, log := filepath.Join(dir, "try.py"), filepath.Join(dir, "job.json"), filepath.Join(dir, "log")
	data, err := json.Marshal(job)
	if err != nil {
		return err
	}
	if err := os.WriteFile(script, tryScript, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(jobFile, data, 0o600); err != nil {
		return err
	}
	err = supervise.Run(ctx, supervise.Command{Path: python, Args: []string{script, jobFile}, LogFile: log,
		Secrets: secret.OfProcess(),
		Env:     append(os.Environ(), "PYTHONIOENCODING=utf-8", "PYTHONDONTWRITEBYTECODE=1", "PYTHONFAULTHANDLER=1")})
	var exit *supervise.ExitError
	if errors.As(err, &exit) && len(exit.Tail) > 0 {
		return fmt.Errorf("%s:\n%s", job.File, strings.Join(exit.Tail, "\n")) // the log goes with the folder
	}
	if err != nil {
		return fmt.Errorf("%s: %w", job.File, err)
	}
	printed, err := mapfile.Read(log, mapfile.MaxLog)
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, foreign.Text(string(printed)))
	return err
}
