package judge

import (
	"fmt"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
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
		e, golden, others := c.encodings[k.Name], k.encodingOf("golden", k.Golden).dtype, false
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
		if len(wider) > 0 {
			c.Note(fmt.Sprintf("the reference has %s where the candidate has a wider type, so a cast is missing or elsewhere: %s", e.dtype, label.Few(wider)))
		}
		if len(narrower) > 0 {
			c.Note(fmt.Sprintf("in %s too the reference keeps a wider type where the candidate does not, so it casts too early, or what is recorded is cast: %s",
				e.dtype, label.Few(narrower)))
		}
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
