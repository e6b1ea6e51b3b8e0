package edit

import (
	"encoding/binary"
	"fmt"
	"math"
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
		if v.DType = a.DType(); v.DType.IsFloat() {
			v.DType = tensor.F32
		} else if v.DType != tensor.Bool {
			v.DType = tensor.I64
		}
		for _, x := range a.Floats() {
			switch v.DType {
			case tensor.Bool:
				v.Data = append(v.Data, map[bool]byte{true: 1}[x != 0])
			case tensor.I64:
				v.Data = binary.LittleEndian.AppendUint64(v.Data, uint64(int64(x)))
			default:
				v.Data = binary.LittleEndian.AppendUint32(v.Data, math.Float32bits(float32(x)))
			}
		}
	}
	e.Patch.Late = nil
	return nil
}

// scalar gives an operator another number: its first one, or the argument that is named: "eps=1e-6".
func (w Written) scalar(s *site) {
	name, value, named := strings.Cut(w.What, "=")
	if !named {
		value = w.What
	}
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return
	}
	for _, a := range s.op.Args {
		if named && a.Name != name || !named && slices.Contains(fixed, a.Name) {
			continue
		}
		var to any = x
		switch a.Value.(type) {
		case int:
			if x == float64(int(x)) {
				to = int(x)
			}
		case float64:
		default:
			continue
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
