package replay_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
	"github.com/goparity/goparity/internal/toy"
)

func zeros(v *program.Value) (*replay.Array, error) {
	n := 1
	for _, d := range v.Shape {
		n *= d
	}
	if n > 1<<16 {
		return nil, os.ErrNotExist
	}
	return replay.Of(v.DType, v.Shape, make([]float64, n))
}

// TestForged runs each sampled operator with arguments that nobody recorded: none may crash, hang or
// make another shape than recorded. Chains repeat what others have had. What is run and what is refused, and why, is kept in
// a file.
func TestForged(t *testing.T) {
	var said strings.Builder
	all := samples(t)
	for _, folder := range slices.Sorted(maps.Keys(all)) {
		p := all[folder]
		seen := map[string]int{}
		for i := range p.Ops {
			o := &p.Ops[i]
			if seen[o.Full]++; seen[o.Full] > 3 {
				continue
			}
			for k := range o.Args {
				was := o.Args[k].Value
				run, refused, why := 0, 0, ""
				for _, v := range forged(was) {
					o.Args[k].Value = v
					for _, id := range o.Out {
						if id == program.None {
							continue
						}
						piece := alone(p, i, id)
						if piece == nil {
							continue
						}
						a, err := replay.Run(t.Context(), piece, zeros, replay.Mode{})
						if err != nil {
							e, ok := errors.AsType[*replay.OpaqueError](err)
							require.True(t, ok, "%v", err)
							refused++
							why, _, _ = strings.Cut(e.Reason, ": runtime error") // which is Go's own word
							continue
						}
						run++
						assert.True(t, slices.Equal(piece.Values[piece.Out].Shape, a.Shape()), "%s with %s = %v", o.Full, o.Args[k].Name, v)
					}
				}
				o.Args[k].Value = was
				fmt.Fprintf(&said, "%s %s: %d run, %d refused %s\n", o.Layer, o.Args[k].Name, run, refused, why)
			}
		}
	}
	toy.Kept(t, "forged.txt", said.String())
}

// forged are arguments of the kinds that an argument may have.
func forged(v any) []any {
	switch v := v.(type) {
	case program.ID:
		return []any{nil, program.ID(0), 3}
	case []program.ID:
		return []any{nil, []program.ID{}, []program.ID{program.None, v[0]}}
	case nil, string:
		return []any{7, "floor", []int{3, -1}}
	case bool:
		return []any{!v}
	}
	const huge = math.MaxInt >> 22
	return []any{nil, -1, -7, 0, 5, huge, math.MinInt / 2, 1e300, []int{}, []int{-1}, []int{0, 0}, []int{huge, huge}, []int{9, -9, 9, 9, 9, 9, 9, 9}}
}

// alone is one operator of a program, with all that it takes from outside; nil where that is no program.
func alone(p *program.Program, i int, out program.ID) *program.Piece {
	q := &program.Program{Ops: slices.Clone(p.Ops[i : i+1]), Values: slices.Clone(p.Values), Ports: []program.Port{{Value: out, At: 1, Until: 1}}}
	for id := range q.Values {
		if m := p.Maker(program.ID(id)); m >= 0 && m != i {
			q.Values[id].Weight = "w"
		}
	}
	q.Ops[0].Stack = -1
	if q.Check() != nil {
		return nil
	}
	return q.Piece(0, func(int) bool { return false })
}
