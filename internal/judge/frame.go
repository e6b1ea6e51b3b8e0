package judge

import (
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
		if spread, err := layout.Spread(f.actual, keep, own.Shape()); err == nil {
			f.golden, f.actual = own, spread
			f.pad = layout.Left(keep, own)
			return f, nil
		}
	}
	if f.golden, err = view(golden, pair.Golden, pair.GoldenView, nil); err != nil {
		return f, err
	}
	if pair.RowMask != nil {
		f.pad = layout.Left(pair.RowMask, f.golden)
	}
	if len(pair.Golden) == 1 && pair.GoldenView.Reshapes() {
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
