package judge

import (
	"fmt"
	"slices"

	"github.com/goparity/goparity/internal/diagnose"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/tensor"
)

// evidence returns the port as hypotheses see it: whole tensors in the golden's own shape, padding
// rows included.
func (p *Port) evidence() *diagnose.Port {
	d := &diagnose.Port{Case: p.Case, Step: p.Step, Layer: p.Layer, Port: p.Port, Seq: p.Seq, Golden: p.Golden, Agrees: p.Agrees, Floor: p.Floor}
	if p.frame == nil {
		return d
	}
	if f, err := p.frame(); err == nil {
		d.Golden, d.Actual, d.PadRows = f.golden, f.actual, f.pad
	}
	if in := p.Injected; in != nil && in.frame != nil {
		if f, err := in.frame(); err == nil && slices.Equal(f.golden.Shape(), d.Golden.Shape()) {
			d.Injected, d.InjectedAgrees = f.actual, in.agrees
		}
	}
	return d
}

// frame is a pair in one shape: that of the golden's own tensor where the views only add, drop or
// join axes or leave rows out.
type frame struct {
	golden, actual *tensor.Tensor
	pad            []bool // rows that do not count; nil if all do
}

func frameOf(golden, actual *dump.Run, pair match.Pair) (f frame, err error) {
	own := golden.Entries[pair.Golden[0]].Tensor
	if f.actual, err = view(actual, pair.Actual, pair.ActualView, nil); err != nil {
		return f, err
	}
	// The candidate has no padding rows: spread its rows to their places.
	if n := len(pair.GoldenView); n > 0 && len(pair.Golden) == 1 && pair.GoldenView[n-1].Kind == layout.Rows {
		keep := pair.GoldenView[n-1].Keep
		if spread, err := spreadRows(f.actual, keep, own.Shape()); err == nil {
			f.golden, f.actual = own, spread
			f.pad = rowsWhere(keep, own, false)
			return f, nil
		}
	}
	if f.golden, err = view(golden, pair.Golden, pair.GoldenView, nil); err != nil {
		return f, err
	}
	if pair.RowMask != nil {
		f.pad = rowsWhere(pair.RowMask, f.golden, false)
	}
	if len(pair.Golden) == 1 && isReshape(pair.GoldenView) {
		f.golden = own
		if reshaped, err := f.actual.Reshape(own.Shape()...); err == nil {
			f.actual = reshaped
		}
		if f.pad != nil && len(f.pad) != own.Len()/max(own.RowLen(), 1) {
			f.pad = nil // ids: one row is a sequence
		}
	}
	return f, nil
}

func isReshape(v layout.View) bool {
	return !slices.ContainsFunc(v, func(op layout.Op) bool { return op.Kind != layout.Reshape })
}

// rowsWhere repeats flags of the first axis for the rows of t, and marks those that equal want.
func rowsWhere(flags []bool, t *tensor.Tensor, want bool) []bool {
	rows := t.Len() / max(t.RowLen(), 1)
	each := max(rows/max(len(flags), 1), 1)
	out := make([]bool, rows)
	for i := range out {
		out[i] = i/each < len(flags) && flags[i/each] == want
	}
	return out
}

// spreadRows puts the rows of t where keep is true, in a tensor of another shape with zeros
// elsewhere.
func spreadRows(t *tensor.Tensor, keep []bool, shape []int) (*tensor.Tensor, error) {
	n, err := tensor.NumElems(shape)
	if err != nil || len(keep) == 0 || n%len(keep) != 0 {
		return nil, fmt.Errorf("%d rows of %s", len(keep), tensor.FormatShape(shape))
	}
	data := t.Copy()
	bytes, _ := data.Bytes()
	row := n / len(keep) * t.DType().Size()
	out := make([]byte, len(keep)*row)
	at := 0
	for i, k := range keep {
		if k {
			if at+row > len(bytes) {
				return nil, fmt.Errorf("%s has fewer rows than are kept", t)
			}
			copy(out[i*row:], bytes[at:at+row])
			at += row
		}
	}
	return tensor.New(t.DType(), shape, out)
}
