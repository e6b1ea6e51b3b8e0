package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/localise"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// tokens is what the final output of a case says if it is logits: which one is the largest in each row.
type tokens struct {
	where, first string // the output, and the first row whose largest is another one
	rows         int
	chosen       map[generation.Choice]int // rows
}

// judgeTokens compares the largest logits where the final output of a forward pass is logits, and fails
// what no rounding does: single logits that alone are off, as if they had been exchanged. Their share of
// a row's norm may be small. It notes what the largest logits say, before all other notes.
func (c *Comparison) judgeTokens() {
	var notes []string
	for _, k := range c.Cases {
		t := &tokens{chosen: map[generation.Choice]int{}}
		for _, pass := range c.flow.Passes {
			if pass.Case != k.Name {
				continue
			}
			p := c.logits(pass)
			if p == nil {
				continue
			}
			if !p.decidesTokens(k) {
				notes = append(notes, labels(p)...)
				continue
			}
			t.add(p)
		}
		if t.rows > 0 {
			notes = append(notes, t.text(k.Name, len(c.Cases) > 1))
		}
	}
	c.Notes = append(slices.Compact(notes), c.Notes...)
}

// decidesTokens reports whether logits are those of tokens, and not of the labels of whole sequences.
func (p *Port) decidesTokens(k Case) bool {
	n := p.Golden.RowLen()
	return n >= leastVocabulary || label.TextHeads.Has(label.Name(p.Layer)) || p.Golden.Len()/n > max(len(k.Golden.Info.Tokens()), 1)
}

// logits is the last output of a forward pass by whose name it is logits; nil if there is none that can
// be compared.
func (c *Comparison) logits(pass *localise.Pass) *Port {
	for _, e := range slices.Backward(pass.Events) {
		p := c.Ports[e.Index]
		if !e.Input && p.Comparable() && p.printed == nil && label.IsLogits(p.Layer, p.Port) && p.Golden.DType().IsFloat() &&
			p.Actual.DType().IsFloat() && p.Golden.RowLen() > 1 && slices.Equal(p.Golden.Shape(), p.Actual.Shape()) {
			return p
		}
	}
	return nil
}

// add compares the rows of a forward pass.
func (t *tokens) add(p *Port) {
	t.where = p.Layer + " " + p.Port
	for row, pos := range generation.Positions(p.Golden, p.Actual, p.DType) {
		if pos == nil {
			continue
		}
		t.rows++
		t.chosen[pos.Choice]++
		if pos.Choice != generation.Same && t.first == "" {
			t.first = fmt.Sprintf("in row %d of step %s it is %d, the golden has %d, %s", row, p.Step, pos.Candidate, pos.Reference, pos.Ahead())
		}
		if len(pos.Outliers) > 0 && p.Base.Pass && !p.Unjudged() {
			p.outliers = true
			p.fail("logits", fmt.Sprintf("in row %d the logits of %s alone are off, as if they were exchanged: no rounding makes that",
				row, strings.Trim(fmt.Sprint(pos.Outliers), "[]")))
		}
	}
}

func (t *tokens) text(name string, several bool) string {
	of := ""
	if several {
		of = " of case " + name
	}
	text := fmt.Sprintf("largest logit%s (%s): the same in %d of %d rows", of, t.where, t.chosen[generation.Same], t.rows)
	if n := t.chosen[generation.Tie]; n > 0 {
		text += fmt.Sprintf(", a tie in %d", n)
	}
	if t.first != "" {
		text += "; the first other one: " + t.first
	}
	return text
}

// labels says so where the logits of a few labels are all but equal: those of a head that was not loaded
// are, for it is zero, or what a library made up.
func labels(p *Port) (notes []string) {
	for i, logits := range []*tensor.Tensor{p.Golden, p.Actual} {
		n, who := p.Golden.RowLen(), []string{"golden", "candidate"}[i]
		if most := generation.Surest(logits); most < 1/float64(n)+surelyLabel {
			notes = append(notes, fmt.Sprintf("the %s's logits of %d labels (%s %s) are all but equal, the largest probability is %.3g: "+
				"was its classification head loaded? One that a checkpoint lacks is zero, or made up", who, n, p.Layer, p.Port, most))
		}
	}
	return notes
}

// Answer is what the candidate answers to a case.
type Answer struct {
	Argmax     int     // the index of the largest logit
	Confidence float64 // its probability
	Where      string  // "lm_head output"
}

// Answer returns what the candidate answers to a case: the last row of logits of the first forward pass.
func (c *Comparison) Answer(caseName string) (a Answer, err error) {
	err = mapfile.Guard(func() error {
		i := slices.IndexFunc(c.flow.Passes, func(p *localise.Pass) bool { return p.Case == caseName })
		var p *Port
		if i >= 0 {
			p = c.logits(c.flow.Passes[i])
		}
		if p == nil {
			return errors.New("no output of both sides is logits by its name (lm_head, classifier, logits): nothing is answered")
		}
		a.Where = p.Layer + " " + p.Port
		if a.Argmax, a.Confidence, err = generation.Last(p.Actual); err != nil {
			return fmt.Errorf("the candidate's logits (%s) %w", a.Where, err)
		}
		return nil
	})
	return a, err
}
