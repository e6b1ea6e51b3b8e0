package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/tensor"
)

// Encoding returns the type by which the case is judged: the encoding of its coarser run. It is
// Invalid where the candidate's has a name that is no type, as a quantised one has, and where no
// output is a float.
func (k Case) Encoding() tensor.DType {
	if name := k.Actual.Info.Encoding.Compute; name != "" {
		if _, err := tensor.ParseDType(name); err != nil {
			return tensor.Invalid
		}
	}
	return k.encoding().dtype
}

// checkEncoded says why the reference in the candidate's encoding is none; "" if it is.
func (k Case) checkEncoded() string {
	want, is := k.encoding(), k.encodingOf("reference", k.Encoded)
	switch {
	case !compare.Has16Bits(want.dtype):
		return fmt.Sprintf("the runs are judged as %s, and only what 16 bits cost is measured: %s", want.dtype, want.why)
	case k.encodingOf("golden", k.Golden).dtype == want.dtype:
		return fmt.Sprintf("the golden is in %s itself", want.dtype)
	case is.dtype != want.dtype && k.Encoded.Info.Encoding.Compute != "":
		return fmt.Sprintf("it ran in %s, and the candidate is judged as %s: %s", k.Encoded.Info.Encoding, want.dtype, want.why)
	}
	return ""
}

// notOfGolden says why another run of the reference, called who, was not given what the golden was, or is none; "" if it
// was.
func (k Case) notOfGolden(r *dump.Run, who string) string {
	if r.Path == k.Actual.Path || k.Actual.Info.Nonce != "" && r.Info.Nonce == k.Actual.Info.Nonce {
		return "it is the candidate's own run"
	}
	if text := otherTokens(who, k.Golden, r); text != "" {
		return text
	}
	g, e := k.Golden.Decoded(), r.Decoded()
	for i := range min(len(g), len(e)) {
		if n := min(len(g[i]), len(e[i])); !slices.Equal(g[i][:n], e[i][:n]) {
			return fmt.Sprintf("its decode steps were given the tokens %v of sequence %d, those of the golden %v: parity run --follow GOLDEN",
				e[i], i, g[i])
		}
	}
	return ""
}

// madeBy names the engine of a run and its attention, in brackets; "" if the run does not say.
func madeBy(r *dump.Run) string {
	parts := slices.DeleteFunc([]string{r.Info.Engine, r.Info.Attention}, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		return ""
	}
	return " (" + sanitize.Line(strings.Join(parts, ", ")) + ")"
}

// onlyFinite leaves out the rows in which the encoding is too small for the reference itself: nothing
// is known of what the candidate should have there.
func (p *Port) onlyFinite() error {
	if !p.measured {
		return nil
	}
	n := p.Golden.RowLen()
	lost := make([]bool, p.Golden.Len()/max(n, 1))
	g, e := make([]float64, n), make([]float64, n)
	strange := func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }
	for row := range lost {
		p.Encoded.Float64s(e, row*n)
		if !slices.ContainsFunc(e, strange) {
			continue
		}
		p.Golden.Float64s(g, row*n)
		for i, x := range e {
			lost[row] = lost[row] || strange(x) && !strange(g[i])
		}
	}
	return p.leaveOut(lost, fmt.Sprintf("overflow in %s in the reference itself", p.DType))
}

// noteCosts notes how many outputs were judged by what the encoding costs the reference.
func (c *Comparison) noteCosts() {
	for _, k := range c.Cases {
		if k.Encoded == nil {
			continue
		}
		measured, all := 0, 0
		for _, p := range c.Ports {
			if p.Case == k.Name && p.Comparable() && p.Judged() && p.DType.IsFloat() {
				if all++; p.Base.Result.Cost != nil {
					measured++
				}
			}
		}
		c.Note(fmt.Sprintf("%d of %d outputs are judged by what %s costs the reference%s: %s", measured, all, c.encodings[k.Name].dtype,
			madeBy(k.Encoded), compare.Cost.Rule))
	}
}

// leaveOut judges a port without some of its rows. Without any row left it is not judged. why says
// what became of them.
func (p *Port) leaveOut(lost []bool, why string) error {
	n := 0
	keep := make([]bool, len(lost))
	for i, l := range lost {
		if keep[i] = !l; l {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	p.skipped = lost
	if n == len(lost) || p.misfit() || p.printed != nil {
		p.allow(unjudged, "all rows %s", why)
		return nil
	}
	for _, t := range []**tensor.Tensor{&p.Golden, &p.Actual, &p.Golden64, &p.Encoded} {
		if *t == nil {
			continue
		}
		var err error
		if *t, err = (*t).SelectRows(keep); err != nil {
			return err
		}
	}
	p.Note = strings.TrimPrefix(fmt.Sprintf("%s; %d of %d rows %s, and are left out", p.Note, n, len(lost), why), "; ")
	p.judgeBase()
	return nil
}
