package judge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goparity/goparity/compare"
	"github.com/goparity/goparity/internal/each"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/trace"
	"github.com/goparity/goparity/tensor"
)

// tokens is what the final output of a case says if it is logits: which one is the largest in each row.
type tokens struct {
	where, first string // the output, and the first row whose largest is another one
	rows, agree  int
	ties         int
}

// judgeTokens compares the largest logits where the final output of a forward pass is logits, and fails
// what no rounding does: single logits that alone are off, as if they had been exchanged. Their share of
// a row's norm may be small. It notes what the largest logits say, before all other notes.
func (c *Comparison) judgeTokens() {
	var notes []string
	for _, k := range c.Cases {
		t := &tokens{}
		for _, pass := range c.flow().Passes {
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
	return n >= leastVocabulary || module.TextHead.Has(label.Name(p.Layer)) || p.Golden.Len()/n > max(len(k.Golden.Info.Tokens()), 1)
}

// logits is the last output of a forward pass by whose name it is logits; nil if there is none that can
// be compared.
func (c *Comparison) logits(pass *trace.Pass) *Port {
	for _, e := range slices.Backward(pass.Events) {
		p := c.Ports[e.Index]
		if !e.Input && p.comparable() && p.printed == nil && module.IsLogits(p.Layer, p.Port) && p.Golden.DType().IsFloat() &&
			p.Actual.DType().IsFloat() && p.Golden.RowLen() > 1 && slices.Equal(p.Golden.Shape(), p.Actual.Shape()) {
			return p
		}
	}
	return nil
}

// add compares the rows of a forward pass, on all cores.
func (t *tokens) add(p *Port) {
	t.where = p.Layer + " " + p.Port
	n := p.Golden.RowLen()
	rows := p.Golden.Len() / n
	positions := make([]*generation.Position, rows)
	parts := min(rows, tokenParts)
	each.Do(context.Background(), parts, func(part int) error {
		g, a := make([]float64, n), make([]float64, n)
		for row := part; row < rows; row += parts {
			p.Golden.Float64s(g, row*n)
			p.Actual.Float64s(a, row*n)
			positions[row] = position(g, a, p.DType)
		}
		return nil
	})
	for row, pos := range positions {
		if pos == nil {
			continue
		}
		t.rows++
		switch pos.Choice {
		case generation.Same:
			t.agree++
		case generation.Tie:
			t.ties++
		}
		if pos.Choice != generation.Same && t.first == "" {
			t.first = fmt.Sprintf("in row %d of step %s it is %d, the golden has %d, %s", row, p.Step, pos.Candidate, pos.Reference, ahead(pos))
		}
		if len(pos.Outliers) > 0 && p.Base.Pass && p.Elsewhere == "" {
			p.exchanged(row, pos.Outliers)
		}
	}
}

// position compares two rows of logits; nil where the golden's decides nothing. Most rows have the same
// largest logit and no error that stands out, which one look shows: of n logits of which four alone are
// off, these have √n/2 times the error of the row.
func position(g, a []float64, d tensor.DType) *generation.Position {
	var sum, squares, most float64
	top, own := 0, 0
	for i, x := range g {
		e := a[i] - x
		sum += e
		squares += e * e
		most = max(most, math.Abs(e))
		if x > g[top] {
			top = i
		}
		if a[i] > a[own] {
			own = i
		}
	}
	n := float64(len(g))
	spread := math.Sqrt(max(squares/n-sum/n*sum/n, 0))
	if top == own && !math.IsInf(g[top], 0) && most+math.Abs(sum/n) <= min(standsOut, math.Sqrt(n)/2.2)*spread || most == 0 {
		return &generation.Position{Choice: generation.Same, Reference: top, Candidate: top, Said: -1}
	}
	golden := generation.NewRow(g)
	if golden.Bad() > 0 || len(golden.Top) == 0 {
		return nil
	}
	pos := generation.Compare(golden, generation.NewRow(a), golden.Top[0].Token, -1, d)
	return &pos
}

func ahead(p *generation.Position) string {
	switch {
	case math.IsNaN(p.Gap):
		return "and the candidate's logits are not finite"
	case p.Choice == generation.Tie:
		return fmt.Sprintf("ahead by %.2g of the noise: a tie", p.Gap)
	}
	return fmt.Sprintf("ahead by %.3g times the noise", p.Gap)
}

// exchanged fails a port of which single logits alone are off.
func (p *Port) exchanged(row int, tokens []int) {
	what := "are off by themselves, as no rounding makes them"
	if len(tokens) == 2 {
		what = "alone are off, as if they were exchanged"
	}
	p.Base.Pass, p.Agrees = false, false
	p.Base.Violations = append(p.Base.Violations, compare.Violation{Criterion: "logits",
		Text: fmt.Sprintf("in row %d the logits of %s %s", row, strings.Trim(fmt.Sprint(tokens), "[]"), what)})
}

func (t *tokens) text(name string, several bool) string {
	of := ""
	if several {
		of = " of case " + name
	}
	text := fmt.Sprintf("largest logit%s (%s): the same in %d of %d rows", of, t.where, t.agree, t.rows)
	if t.ties > 0 {
		text += fmt.Sprintf(", a tie in %d", t.ties)
	}
	if t.first != "" {
		text += "; the first other one: " + t.first
	}
	return text
}

// labels says so where the logits of a few labels are all but equal: those of a head that was not loaded
// are, for it is zero, or what a library made up.
func labels(p *Port) (notes []string) {
	n := p.Golden.RowLen()
	x := make([]float64, n)
	for _, side := range []struct {
		who  string
		read func([]float64, int) int
	}{{"golden", p.Golden.Float64s}, {"candidate", p.Actual.Float64s}} {
		most := 0.0
		for row := range p.Golden.Len() / n {
			side.read(x, row*n)
			r := generation.NewRow(x)
			if r.Bad() > 0 || len(r.Top) == 0 {
				return nil
			}
			most = max(most, math.Exp(r.LogProb(r.Top[0].Token)))
		}
		if most < 1/float64(n)+surelyLabel {
			notes = append(notes, fmt.Sprintf("the %s's logits of %d labels (%s %s) are all but equal, the largest probability is %.3g: "+
				"was its classification head loaded? One that a checkpoint lacks is zero, or made up", side.who, n, p.Layer, p.Port, most))
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
		for _, pass := range c.flow().Passes {
			if pass.Case != caseName {
				continue
			}
			p := c.logits(pass)
			if p == nil {
				break
			}
			n := p.Actual.RowLen()
			v := make([]float64, n)
			p.Actual.Float64s(v, p.Actual.Len()-n)
			r := generation.NewRow(v)
			if r.Bad() > 0 || len(r.Top) == 0 {
				return fmt.Errorf("the candidate's logits (%s %s) are not finite", p.Layer, p.Port)
			}
			a = Answer{r.Top[0].Token, math.Exp(r.LogProb(r.Top[0].Token)), p.Layer + " " + p.Port}
			return nil
		}
		return errors.New("no output of both sides is logits by its name (lm_head, classifier, logits): nothing is answered")
	})
	return a, err
}
