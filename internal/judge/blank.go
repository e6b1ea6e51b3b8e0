package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// Blank returns what a golden would be of the run that a program records: its ports, shapes, types and
// tokens, and of the numbers only those that the model was given.
func Blank(caseName string, p *program.Program) (*dump.Run, error) {
	var entries []dump.Entry
	for _, at := range p.Ports {
		v := &p.Values[at.Value]
		if v.DType == tensor.Invalid {
			continue // complex numbers
		}
		t, err := given(p, v), error(nil)
		if t == nil {
			t, err = placeholder(v, at.Value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", p.File, label.Join(at.Layer, at.Name), err)
		}
		entries = append(entries, dump.Entry{Step: at.Step, Layer: at.Layer, Port: at.Name, Tensor: t})
	}
	return ofProgram(caseName, p, entries), nil
}

// Blanks are those of several programs, each of whose forward passes may be of sequences of its own.
func Blanks(programs []*program.Program) (runs []*dump.Run, err error) {
	for i, p := range programs {
		g, err := Blank(fmt.Sprint(i), p)
		if err != nil {
			return nil, err
		}
		apart(g, p)
		runs = append(runs, g)
	}
	return runs, nil
}

// given is what the model was given; nil for another value, and where that is not known.
func given(p *program.Program, v *program.Value) *tensor.Tensor {
	if v.Input == "" {
		return nil
	}
	t, err := p.Constant("input:" + v.Input)
	if err != nil || t.DType() != v.DType || !slices.Equal(t.Shape(), v.Shape) {
		return nil
	}
	return t
}

// placeholder is a tensor of one number, another for each value, and of no size in memory.
func placeholder(v *program.Value, id program.ID) (*tensor.Tensor, error) {
	made, err := replay.Of(v.DType, slices.Repeat([]int{1}, len(v.Shape)), []float64{float64(id + 1)})
	if err != nil {
		return nil, err
	}
	t, err := made.Tensor()
	if err != nil {
		return nil, err
	}
	return t.Broadcast(v.Shape...)
}

// ofProgram is a golden that a program stands for.
func ofProgram(caseName string, p *program.Program, entries []dump.Entry) *dump.Run {
	engine, version, _ := strings.Cut(p.Engine, " ")
	info := dump.Info{Schema: dump.Schema, Engine: engine, Case: caseName, Mode: dump.Standard}
	if version != "" {
		info.Versions = map[string]string{engine: version}
	}
	if ids := inputOf(p, first(p), "input_ids"); ids != nil {
		info.TokenIDs, _ = json.Marshal(ids) // of numbers
	}
	run := dump.New(p.File, info, dump.OrderRunFile, entries)
	if run.Info.PadMask = padding(inputOf(p, first(p), "attention_mask")); run.Info.PadMask == nil {
		run.Info.PadMask = padding(numbers(run.RealTokens())) // as a mask of another form has it
	}
	return run
}

func first(p *program.Program) string {
	if len(p.Passes) == 0 {
		return ""
	}
	return p.Passes[0].Step
}

// padding returns a mask that has padding; nil for one that has none.
func padding(mask [][]int) [][]int {
	if slices.ContainsFunc(mask, func(row []int) bool { return slices.Contains(row, 0) }) {
		return mask
	}
	return nil
}

// apart says of what stands for the golden of a program of several forward passes that each is of sequences
// of its own, where none goes on with what another one left.
func apart(run *dump.Run, p *program.Program) {
	if len(p.Passes) < 2 || goesOn(p) {
		return
	}
	info := run.Info
	info.PadMask, info.PadMasks = nil, map[string][][]int{}
	var tokens [][]int
	for i, pass := range p.Passes {
		of := dump.Info{PadMask: padding(inputOf(p, pass.Step, "attention_mask"))}
		of.TokenIDs, _ = json.Marshal(inputOf(p, pass.Step, "input_ids"))
		if i == 0 {
			info.PadMask = of.PadMask
		} else if of.PadMask != nil {
			info.PadMasks[pass.Step] = of.PadMask
		}
		var items []dump.PassItem
		for _, row := range of.Unpadded() {
			items = append(items, dump.PassItem{Sequence: len(tokens), To: len(row), Fresh: true})
			tokens = append(tokens, row)
		}
		if items == nil {
			return
		}
		info.Passes = append(info.Passes, items)
	}
	info.TokenIDs, _ = json.Marshal(tokens)
	run.Info = info
}

// goesOn reports whether a forward pass takes what an earlier one made of its inputs, as from a cache.
func goesOn(p *program.Program) bool {
	of := make([]int, len(p.Values)) // by value: 1 + the first forward pass whose inputs it hangs on; 0 for none
	for i, pass := range p.Passes {
		for v := range p.Values {
			if strings.HasPrefix(p.Values[v].Input, pass.Step+":") {
				of[v] = i + 1
			}
		}
		for o := pass.First; o < pass.End; o++ {
			first := 0
			for _, id := range p.Operands(o) {
				if n := of[id]; n > 0 && (first == 0 || n < first) {
					first = n
				}
			}
			if first > 0 && first <= i {
				return true
			}
			for _, id := range p.Ops[o].Out {
				if id != program.None {
					of[id] = first
				}
			}
		}
	}
	return false
}

// inputOf returns integers that the model was given in a pass, a list for each sequence; nil where the
// program does not have them.
func inputOf(p *program.Program, step, name string) (rows [][]int) {
	t, err := p.Constant("input:" + step + ":" + name)
	if err != nil || t.DType().IsFloat() || len(t.Shape()) != 2 || t.Len() == 0 {
		return nil
	}
	values := make([]int64, t.Len())
	t.Int64s(values, 0)
	for row := range slices.Chunk(values, t.RowLen()) {
		ids := make([]int, len(row))
		for i, id := range row {
			ids[i] = int(id)
		}
		rows = append(rows, ids)
	}
	return rows
}

func numbers(mask [][]bool) (out [][]int) {
	for _, row := range mask {
		line := make([]int, len(row))
		for i, is := range row {
			if is {
				line[i] = 1
			}
		}
		out = append(out, line)
	}
	return out
}
