package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/tensor"
)

// referenceOf is what a golden says of one of its sequences: its prompt, the tokens that it chose,
// and the logits of each choice. A token that the next step was fed and that is not the best of its
// row ends it, and so does one that the tokenizer does not have: a server chooses the best.
func referenceOf(run *dump.Run, sequence, of int, judging tensor.DType) (*serving.Reference, error) {
	ref := &serving.Reference{}
	if asked := run.Prompts(); sequence < len(asked) {
		ref.Prompt = asked[sequence]
	}
	if sequence == 0 {
		ref.Text = run.Info.ReferenceText
	}
	var decoded []int
	if all := run.Decoded(); sequence < len(all) {
		decoded = all[sequence]
	}
	steps := run.Steps()
	return ref, choose(ref, judging, decoded, len(steps), func(k int) (generation.Row, error) {
		values, err := lastLogits(run, steps[k], sequence, of)
		return generation.NewRow(values), err
	})
}

// spokenReference is what a golden says that keeps logits along a text.
func spokenReference(run *dump.Run, judging tensor.DType) (*serving.Reference, error) {
	side, err := continuation.Open(run, nil)
	if err != nil {
		return nil, err
	}
	of := run.Info.Generation
	ref := &serving.Reference{Prompt: side.Text[:of.From], Text: run.Info.ReferenceText}
	return ref, choose(ref, judging, of.Tokens, len(of.Tokens), func(k int) (generation.Row, error) {
		row, _ := side.Row(k)
		return row, nil
	})
}

// choose reads n rows. fed are the tokens that followed them, as far as they are known.
func choose(ref *serving.Reference, judging tensor.DType, fed []int, n int, read func(k int) (generation.Row, error)) error {
	err := mapfile.Guard(func() error {
		for k := range n {
			of, err := read(k)
			if err != nil {
				return err
			}
			if of.Beyond { // a server may choose that token
				return nil
			}
			row := serving.NewRow(of, judging)
			best := row.Best()
			ref.Rows, ref.Tokens = append(ref.Rows, row), append(ref.Tokens, best)
			if k < len(fed) && fed[k] != best {
				if x, _ := row.Logit(fed[k]); len(row.Top) == 0 || x != row.Top[0].Value {
					return nil
				}
				ref.Tokens[k] = fed[k]
			}
		}
		return nil
	})
	if words := strings.Trim(fmt.Sprint(ref.Tokens), "[]"); strings.HasPrefix(ref.Text, words) || strings.HasPrefix(words, ref.Text) {
		ref.Text = "" // a reference without a tokenizer wrote its ids
	}
	return err
}

// lastLogits are the logits after the last token of a sequence in one step.
func lastLogits(run *dump.Run, step string, sequence, of int) ([]float64, error) {
	t := logitsOf(run.Entries, step)
	if t == nil {
		return nil, fmt.Errorf("step %s has no logits: let capture keep lm_head, or the model's output, and renew the goldens", step)
	}
	n := t.RowLen()
	rows := t.Len() / max(1, n)
	if n < 2 || rows == 0 || rows%of != 0 {
		return nil, fmt.Errorf("step %s: logits of shape %s are not those of %d sequences", step, tensor.FormatShape(t.Shape()), of)
	}
	each := rows / of
	at := (sequence+1)*each - 1
	if mask := run.Info.PadMask; step == run.Steps()[0] && sequence < len(mask) && len(mask[sequence]) == each {
		if last := lastReal(mask[sequence]); last >= 0 {
			at = sequence*each + last
		}
	}
	values := make([]float64, n)
	t.Float64s(values, at*n)
	return values, nil
}

func lastReal(mask []int) int {
	for i, v := range slices.Backward(mask) {
		if v != 0 {
			return i
		}
	}
	return -1
}

// logitsOf returns the logits of a step: the output that is most surely called so, the last of several, or nil.
func logitsOf(entries []dump.Entry, step string) (best *tensor.Tensor) {
	least := 1
	for _, e := range entries {
		rank := module.LogitsRank(e.Layer, e.Port)
		if e.Step == step && rank >= least && label.RoleOf(e.Port) == label.RoleOutput && e.Tensor.DType().IsFloat() && len(e.Tensor.Shape()) > 1 {
			best, least = e.Tensor, rank
		}
	}
	return best
}
