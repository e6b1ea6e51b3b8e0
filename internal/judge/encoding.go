package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/report"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// encoding is the type in which a run was asked to compute, and how that is known. It judges all
// its outputs: a float32 logit of a bfloat16 run was made of bfloat16 numbers.
type encoding struct {
	dtype tensor.DType // Invalid where the run has no output of floats
	why   string
}

// encoding returns that of a case: the coarser of its two runs'.
func (k Case) encoding() encoding {
	g, a := k.encodingOf("golden", k.Golden), k.encodingOf("candidate", k.Actual)
	if a.dtype == tensor.Invalid || g.dtype != tensor.Invalid && compare.Coarser(g.dtype, a.dtype) != a.dtype {
		return g
	}
	return a
}

// encodingOf returns what the run says of itself. Keys and values that are kept in 8 bits are averaged before
// anything is made of them: they cost a run no more than 16 bits do, and never excuse 8; and nothing where the golden has
// that in it. A name that is no type, as that of a quantised encoding, says nothing of what is computed with: then it is the type of most
// outputs of floats.
func (k Case) encodingOf(who string, r *dump.Run) encoding {
	var e encoding
	for i, name := range []string{r.Info.Encoding.Compute, r.Info.Encoding.KVCache} {
		if i == 1 && k.Golden.Info.Encoding.KVCache != "" {
			break
		}
		d, err := tensor.ParseDType(name)
		if i == 1 && err == nil && d.Size() == 1 {
			d = tensor.BF16
		}
		if err == nil && d.IsFloat() && (e.dtype == tensor.Invalid || compare.Coarser(e.dtype, d) == d) {
			e = encoding{d, fmt.Sprintf("the %s's run says that its encoding is %s", who, r.Info.Encoding)}
		}
	}
	if e.dtype != tensor.Invalid {
		return e
	}
	count, n := map[tensor.DType]int{}, 0
	for _, entry := range r.Entries {
		d := entry.Tensor.DType()
		if label.IsInput(entry.Port) || !d.IsFloat() || entry.Tensor.Len() == 0 {
			continue
		}
		n++
		count[d]++
		if most := count[e.dtype]; count[d] > most || count[d] == most && compare.Coarser(e.dtype, d) == d {
			e.dtype = d
		}
	}
	e.why = fmt.Sprintf("%d of the %s's %d outputs are %s, and its run does not say its encoding", count[e.dtype], who, n, e.dtype)
	return e
}

// noteEncoding notes which type judges, where single outputs have another one, and which are of a wider or a narrower type
// than the reference has in the candidate's encoding.
func (c *Comparison) noteEncoding() {
	for _, k := range c.Cases {
		var wider, narrower []string
		e, golden, others := k.judged, k.encodingOf("golden", k.Golden).dtype, false
		for _, p := range c.Ports {
			if p.Case != k.Name || !p.Comparable() || !p.Judged() || !p.DType.IsFloat() || p.printed != nil {
				continue
			}
			is := p.Actual.DType()
			others = others || is != p.DType
			right, known := p.inEncoding(e.dtype, golden)
			switch place := fmt.Sprintf("%s %s (%s)", p.Layer, p.Port, is); {
			case !known:
			case right == e.dtype && finer(is, e.dtype):
				wider = append(wider, place)
			case finer(right, e.dtype) && finer(right, is):
				narrower = append(narrower, place)
			}
		}
		if others {
			c.Note(fmt.Sprintf("outputs are judged as %s, whatever wider type single ones have: %s", e.dtype, e.why))
		}
		c.noteFew(fmt.Sprintf("the reference has %s where the candidate has a wider type, so a cast is missing or elsewhere", e.dtype), wider)
		c.noteFew(fmt.Sprintf("in %s too the reference keeps a wider type where the candidate does not, so it casts too early, "+
			"or what is recorded is cast", e.dtype), narrower)
		if held := k.Actual.Info.Encoding.KVCache; held != "" && held != k.Golden.Info.Encoding.KVCache {
			if d, err := tensor.ParseDType(held); err != nil || d == tensor.Invalid {
				c.Note(fmt.Sprintf("the candidate keeps keys and values in %s, which the reference does not and no limit allows for: what that costs is not told from a fault", held))
			}
		}
	}
}

// inEncoding is the type that the reference has of a port in an encoding, by its run in that one: that beside the golden, or
// the golden itself.
func (p *Port) inEncoding(asked, golden tensor.DType) (d tensor.DType, known bool) {
	if p.Encoded != nil {
		return p.Encoded.DType(), true
	}
	return p.Golden.DType(), asked != tensor.Invalid && asked == golden
}

// typed sets the type that judges a port: the encoding of its case. A coarser one counts where the
// reference has it, too, or where it is declared; else the port is downcast.
func (p *Port) typed(asked tensor.DType, declared func(layer, port string, d tensor.DType) bool) {
	g, a := p.Golden.DType(), p.Actual.DType()
	if p.printed != nil {
		g, a = p.printed.golden, p.printed.actual
	}
	p.DType = compare.Coarser(g, a)
	if !p.DType.IsFloat() || asked == tensor.Invalid {
		return
	}
	also := !finer(g, a) && finer(asked, g) // on the golden's side, too
	if p.Encoded != nil {
		also = also || !finer(p.Encoded.DType(), a)
	}
	if !finer(asked, p.DType) || also || declared != nil && declared(p.Layer, p.Port, p.DType) {
		p.DType = compare.Coarser(asked, p.DType)
		return
	}
	p.downcast = p.DType
	p.DType = compare.Coarser(asked, g)
}

func finer(d, than tensor.DType) bool { return d.Epsilon() < than.Epsilon() }

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
	for row := range lost {
		e := vec.Read(p.Encoded, n, []int{row})
		if vec.All(e, vec.IsFinite) {
			continue
		}
		for i, g := range vec.Read(p.Golden, n, []int{row}) {
			lost[row] = lost[row] || vec.IsFinite(g) && !vec.IsFinite(e[i])
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
		c.Note(fmt.Sprintf("%d of %d outputs are judged by what %s costs the reference%s: %s", measured, all, k.judged.dtype,
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

// costOfWeights measures how far the golden, of dequantised weights, is from the reference on the
// weights as they were, and how far the rounding of inputs carries it. Where a row was left out of the
// comparison this is of all rows.
func (p *Port) costOfWeights() {
	if p.Unquantised == nil || !p.Judged() || !p.Golden.DType().IsFloat() || p.printed != nil {
		return
	}
	off := func(from *tensor.Tensor) (compare.Result, bool) {
		if from == nil || !slices.Equal(from.Shape(), p.Golden.Shape()) {
			return compare.Result{}, false
		}
		r, err := compare.Tensors(from, p.Golden, compare.Tolerance{})
		return r, err == nil
	}
	r, ok := off(p.Unquantised)
	if !ok {
		return
	}
	q := &report.Quantisation{Cost: report.Float(r.RelL2), RowCost: report.Float(r.WorstRow.RelL2)}
	if r, ok := off(p.Unrounded); ok {
		q.Activations = new(report.Float(r.RelL2))
	}
	p.quantisation = q
}

// noteRounding notes what makes a right engine fail: it rounds the inputs of products, and the golden
// on dequantised weights does not.
func (c *Comparison) noteRounding() {
	if c.Verdict == nil {
		return
	}
	for _, k := range c.Cases {
		if k.Unquantised != nil && k.Golden.Info.Activations == nil && k.Encoding() == tensor.Invalid {
			c.Note(fmt.Sprintf("case %s: engines that run %s also round the inputs of products to int8, which is off by about 1 %% a product "+
				"and is no error: a reference that does so too judges what is left: {variant: dequantised, activations: int8/256} for "+
				"K-quants, int8/32 for q4_0 and q8_0", k.Name, k.Actual.Info.Encoding))
		}
	}
}
