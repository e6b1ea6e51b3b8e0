package edit

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/tensor"
)

// Written is an edit as a person writes it: "layers.3.mixer:17 scalar 0.125".
type Written struct {
	Layer string // a pattern
	Op    int    // the number of the operator among those of a call of the layer, from 1
	Kind  string // as of Edit
	What  string // a number, the name of a weight, or a part of Edit.Text
}

// Parse reads an edit.
func Parse(text string) (w Written, err error) {
	place, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	w.Kind, w.What, _ = strings.Cut(strings.TrimSpace(rest), " ")
	w.What = strings.TrimSpace(w.What)
	at := strings.LastIndex(place, ":")
	if at > 0 {
		w.Layer = place[:at]
		w.Op, err = strconv.Atoi(place[at+1:])
	}
	if at <= 0 || err != nil || w.Op < 1 || w.Kind == "" {
		return w, fmt.Errorf("%q: want LAYER:OPERATOR KIND [WHAT], as in %q", text, "layers.3.mixer:17 scalar 0.125")
	}
	return w, nil
}

// Find returns the edit that is meant, of an operator of a piece. weights and fed are those of [List].
func (w Written) Find(b *replay.Base, weights []Weight, fed *Fed, op int) (Edit, error) {
	s := newSite(b, weights)
	s.on([]int{op})
	switch w.Kind {
	case "scalar":
		w.scalar(s)
	case "weight":
		w.weight(s)
	}
	if len(s.edits) > 0 {
		return s.edits[0], nil
	}
	var have, others []string // those of the kind that was meant come first
	edits, _ := List(b, weights, fed)
	for _, e := range edits {
		switch text := strconv.Quote(e.Kind + " " + e.Text); {
		case !slices.Contains(e.At, op):
		case e.Kind == w.Kind && strings.Contains(e.Text, w.What):
			return e, e.settle(b)
		case e.Kind == w.Kind:
			have = append(have, text)
		default:
			others = append(others, text)
		}
	}
	have = append(have, others...)
	return Edit{}, fmt.Errorf("operator %d of %s, %s, has no edit %q: it has %s and %d others", w.Op, b.Ops[op].Layer, b.Ops[op].Full,
		strings.TrimSpace(w.Kind+" "+w.What), strings.Join(have[:min(len(have), 8)], ", "), max(len(have)-8, 0))
}

// settle makes the numbers that an edit makes when they are needed, so that a program can hold them: as bools, integers or
// float32.
func (e *Edit) settle(b *replay.Base) error {
	for id, numbers := range e.Patch.Late {
		a, err := numbers()
		if err != nil {
			return err
		}
		v := &e.Patch.Made[int(id)-len(b.Values)]
		var data any
		switch d := a.DType(); {
		case d == tensor.Bool:
			v.DType, data = d, mapped(a.Floats(), func(x float64) bool { return x != 0 })
		case d.IsFloat():
			v.DType, data = tensor.F32, mapped(a.Floats(), func(x float64) float32 { return float32(x) })
		default:
			v.DType, data = tensor.I64, mapped(a.Floats(), func(x float64) int64 { return int64(x) })
		}
		if v.Data, err = binary.Append(nil, binary.LittleEndian, data); err != nil {
			return err
		}
	}
	e.Patch.Late = nil
	return nil
}

// scalar gives an operator another number: its first one, or the argument that is named: "eps=1e-6".
func (w Written) scalar(s *site) {
	name, value, named := strings.Cut(w.What, "=")
	if !named {
		name, value = "", name
	}
	x, err := strconv.ParseFloat(value, 64)
	for _, a := range s.op.Args {
		_, whole := a.Value.(int)
		_, fraction := a.Value.(float64)
		if err != nil || !whole && !fraction || named && a.Name != name || !named && slices.Contains(fixed, a.Name) {
			continue
		}
		var to any = x
		if whole && x == float64(int(x)) {
			to = int(x)
		}
		s.given("scalar", 0, text("%s of %s: %v → %s", a.Name, s.op.Name, a.Value, number(to)), a.Name, to)
	}
}

// weight reads another weight in the place of the one that an operator takes.
func (w Written) weight(s *site) {
	for _, x := range s.operands {
		v := s.Values[x.id]
		if v.Weight == "" || !slices.ContainsFunc(s.weights, func(x Weight) bool { return x.Name == w.What && slices.Equal(x.Shape, v.Shape) }) {
			continue
		}
		s.add("weight", 0, text("%s → %s", v.Weight, w.What), func(to *writer, o program.Op) {
			to.give(o, x.name, to.outside(program.Value{Shape: v.Shape, DType: v.DType, Type: v.Type, Weight: w.What}))
		})
	}
}
