package parity_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/maxckpt"
	"github.com/goparity/goparity/tensor/npy"
	"github.com/goparity/goparity/tensor/safetensors"
)

// toy is a model that runs in the test: one layer a line, in the order in which layers end.
//
//	embed = embed 8 1: ids             a table of width 8, seed 1; ids are the tokens of the pass
//	layers.0.norm = norm: embed
//	layers.0.mlp = linear 8 2: layers.0.norm
//	layers.0 = add: embed; layers.0.mlp
//	choice = argmax: layers.0          int64
//
// A layer records its inputs, but for those from layers inside it, and its output. All arithmetic
// is float64, rounded to the type of the run after each layer.
type toy struct{ layers []toyLayer }

type toyLayer struct {
	name, op string
	args     []int
	from     []string
}

func parseToy(text string) (*toy, error) {
	m := &toy{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, ok := strings.Cut(line, " = ")
		how, from, ok2 := strings.Cut(rest, ": ")
		if !ok || !ok2 {
			return nil, fmt.Errorf("%q is not NAME = OP ARGS: INPUT; INPUT", line)
		}
		words := strings.Fields(how)
		l := toyLayer{name: name, op: words[0], from: strings.Split(from, "; ")}
		for _, w := range words[1:] {
			n, err := strconv.Atoi(w)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			l.args = append(l.args, n)
		}
		m.layers = append(m.layers, l)
	}
	return m, nil
}

// toyRun is one run of a toy: what mkdump's flags and edits say.
type toyRun struct {
	engine, format, caseName, encoding, mode string
	steps                                    int
	noise                                    float64 // relative, on every float output
	bare                                     bool    // without run.json
	edits                                    []toyEdit
}

// toyEdit spoils the output of one layer, and with it all that follows: -NAME does not record the
// layer, NAME*X scales its output, NAME[i]=X sets one element, NAME:PORT renames the output,
// NAME~WIDTH cuts its rows.
type toyEdit struct {
	layer string
	drop  bool
	scale float64
	at    int
	value float64
	port  string
	width int
}

var editForm = regexp.MustCompile(`^(-?)(.+?)(?:\*(.+)|\[(\d+)\]=(.+)|:(.+)|~(\d+))?$`)

func parseEdit(s string) (e toyEdit, err error) {
	m := editForm.FindStringSubmatch(s)
	if m == nil || m[1]+m[3]+m[4]+m[6]+m[7] == "" {
		return e, fmt.Errorf("no edit: %q", s)
	}
	number := func(text string, none float64) (x float64) {
		if x = none; text != "" && err == nil {
			x, err = strconv.ParseFloat(text, 64)
		}
		return x
	}
	e = toyEdit{layer: m[2], drop: m[1] != "", scale: number(m[3], 1), at: int(number(m[4], -1)), value: number(m[5], 0),
		port: m[6], width: int(number(m[7], 0))}
	return e, err
}

// matrix is rows of numbers; ints are recorded as int64.
type matrix struct {
	rows [][]float64
	ints bool
}

func (m matrix) tensor(d tensor.DType) (*tensor.Tensor, error) {
	shape := []int{1, len(m.rows), len(m.rows[0])}
	flat := slices.Concat(m.rows...)
	switch {
	case m.ints:
		return convert[int64](flat, shape[:2])
	case d == tensor.F64:
		return convert[float64](flat, shape)
	}
	return convert[float32](flat, shape)
}

func convert[T int64 | float32 | float64](v []float64, shape []int) (*tensor.Tensor, error) {
	out := make([]T, len(v))
	for i, x := range v {
		out[i] = T(x)
	}
	return tensor.Of(out, shape...)
}

// write runs the model and writes a dump folder.
func (m *toy) write(dir string, r toyRun) error {
	d, err := tensor.ParseDType(r.encoding)
	if err != nil {
		return err
	}
	for _, e := range r.edits {
		if !slices.ContainsFunc(m.layers, func(l toyLayer) bool { return l.name == e.layer }) {
			return fmt.Errorf("edit: the model has no layer %q", e.layer)
		}
	}
	info := dump.Info{Schema: dump.Schema, Engine: r.engine, Versions: map[string]string{r.engine: "1.2.3"},
		Device: "cpu", Encoding: dump.Encoding{Compute: r.encoding},
		Mode: r.mode, Case: r.caseName, Date: "2026-11-21T11:46:02Z"}
	var asked [][]int
	for step := range r.steps {
		ids := tokens(r.caseName, step)
		asked = append(asked, ids)
		entries, err := m.pass(ids, d, r)
		if err != nil {
			return err
		}
		order, err := writeStep(dir, strconv.Itoa(step), r, entries)
		if err != nil {
			return err
		}
		info.Order = append(info.Order, order...)
	}
	if info.TokenIDs, err = json.Marshal(asked[:1]); err != nil || r.bare {
		return err
	}
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, dump.RunFile), data, 0o644)
}

// tokens returns six ids for the prefill and one for each step after it.
func tokens(caseName string, step int) []int {
	n := 6
	if step > 0 {
		n = 1
	}
	ids := make([]int, n)
	for i := range ids {
		ids[i] = (i*7 + step*3 + len(caseName)) % 16
	}
	return ids
}

func (m *toy) pass(ids []int, d tensor.DType, r toyRun) ([]tensor.Named, error) {
	noise := rand.New(rand.NewPCG(1, 2))
	in := matrix{ints: true}
	for _, id := range ids {
		in.rows = append(in.rows, []float64{float64(id)})
	}
	values := map[string]matrix{"ids": in}
	var out []tensor.Named
	record := func(label string, v matrix) error {
		t, err := v.tensor(d)
		out = append(out, tensor.Named{Name: label, Tensor: t})
		return err
	}
	for _, l := range m.layers {
		var from []matrix
		for _, name := range l.from {
			v, ok := values[name]
			if !ok {
				return nil, fmt.Errorf("%s: no value %q", l.name, name)
			}
			from = append(from, v)
		}
		v, err := l.compute(from)
		if err != nil {
			return nil, err
		}
		port, drop := "output", false
		for _, e := range r.edits {
			if e.layer == l.name {
				v = v.edit(e)
				drop = drop || e.drop
				if e.port != "" {
					port = e.port
				}
			}
		}
		v = v.round(d, r.noise, noise)
		values[l.name] = v
		if drop {
			continue
		}
		n := 0
		for i, name := range l.from {
			if strings.HasPrefix(name, l.name+".") {
				continue
			}
			if err := record(fmt.Sprintf("%s-input_%d", l.name, n), from[i]); err != nil {
				return nil, err
			}
			n++
		}
		if err := record(l.name+"-"+port, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (v matrix) edit(e toyEdit) matrix {
	out := matrix{ints: v.ints}
	n := 0
	for _, row := range v.rows {
		row = slices.Clone(row)
		for j := range row {
			row[j] *= e.scale
			if n == e.at {
				row[j] = e.value
			}
			n++
		}
		if e.width > 0 {
			row = row[:e.width]
		}
		out.rows = append(out.rows, row)
	}
	return out
}

func (v matrix) round(d tensor.DType, noise float64, r *rand.Rand) matrix {
	if v.ints {
		return v
	}
	for _, row := range v.rows {
		for j := range row {
			row[j] *= 1 + noise*(2*r.Float64()-1)
			if d == tensor.F32 {
				row[j] = float64(float32(row[j]))
			}
		}
	}
	return v
}

func (l toyLayer) compute(from []matrix) (matrix, error) {
	x := from[0]
	out := matrix{}
	for i, row := range x.rows {
		var y []float64
		switch l.op {
		case "embed":
			y = weights(l.args[1], 16, l.args[0])[int(row[0])]
		case "linear":
			w := weights(l.args[1], len(row), l.args[0])
			y = make([]float64, l.args[0])
			for k, a := range row {
				for j := range y {
					y[j] += a * w[k][j] / math.Sqrt(float64(len(row)))
				}
			}
		case "norm":
			sum := 1e-6
			for _, a := range row {
				sum += a * a
			}
			for _, a := range row {
				y = append(y, a/math.Sqrt(sum/float64(len(row))))
			}
		case "add":
			for j, a := range row {
				y = append(y, a+from[1].rows[i][j])
			}
		case "argmax":
			best := 0
			for j, a := range row {
				if a > row[best] {
					best = j
				}
			}
			y, out.ints = []float64{float64(best)}, true
		default:
			return out, fmt.Errorf("%s: no operation %q", l.name, l.op)
		}
		out.rows = append(out.rows, slices.Clone(y))
	}
	return out, nil
}

func weights(seed, rows, cols int) [][]float64 {
	r := rand.New(rand.NewPCG(uint64(seed), 7))
	w := make([][]float64, rows)
	for i := range w {
		for range cols {
			w[i] = append(w[i], r.NormFloat64())
		}
	}
	return w
}

// writeStep writes the tensors of one pass, a file each or all in one. Names with slashes cannot be
// files: then files are numbered.
func writeStep(dir, step string, r toyRun, entries []tensor.Named) (order []dump.OrderEntry, err error) {
	if err := os.MkdirAll(filepath.Join(dir, step), 0o755); err != nil {
		return nil, err
	}
	write := func(file string, f func(w io.Writer) error) error {
		out, err := os.Create(filepath.Join(dir, step, file))
		if err != nil {
			return err
		}
		w := bufio.NewWriter(out)
		return errors.Join(f(w), w.Flush(), out.Close())
	}
	for i, e := range entries {
		layer, port := label.Split(e.Name)
		o := dump.OrderEntry{Step: step, Layer: layer, Port: port, File: e.Name + "." + r.format}
		if strings.ContainsAny(e.Name, `/\`) {
			o.File = fmt.Sprintf("%04d.%s", i, r.format)
		}
		switch r.format {
		case "max":
			err = write(o.File, func(w io.Writer) error { return maxckpt.Write(w, e.Name, e.Tensor) })
		case "npy":
			err = write(o.File, func(w io.Writer) error { return npy.Write(w, e.Tensor) })
		case "safetensors":
			o.File, o.Name = "all.safetensors", e.Name
		default:
			err = fmt.Errorf("format %q", r.format)
		}
		if err != nil {
			return nil, err
		}
		order = append(order, o)
	}
	if r.format == "safetensors" {
		err = write("all.safetensors", func(w io.Writer) error { return safetensors.Write(w, entries, nil) })
	}
	return order, err
}
