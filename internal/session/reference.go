package session

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/internal/continuation"
	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/generation"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/path"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/vec"
	"github.com/goparity/goparity/tensor"
)

// referenceOf is what a golden says of one of its sequences: its prompt, the tokens that it chose,
// and the logits of each choice. A token that the next step was fed and that is not the best of its
// row ends it, and so does one that the tokenizer does not have: a server chooses the best.
func referenceOf(run *dump.Run, sequence int, judging tensor.DType) (*serving.Reference, error) {
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
	sheet, err := path.New(run, nil)
	if err != nil {
		return nil, err
	}
	layer, port := logitsOf(run.Entries)
	return ref, choose(ref, judging, decoded, len(run.Steps()), func(k int) (generation.Row, error) {
		at := len(run.Info.Unpadded()[sequence]) - 1 + k
		rows, err := sheet.Rows(layer, port, sequence, at, at+1)
		if err != nil || len(rows) != 1 || rows[0].Len() < 2 {
			return generation.Row{}, fmt.Errorf("step %d has no logits: let capture keep lm_head, or the model's output, and renew the goldens", k)
		}
		return generation.NewRow(vec.ReadAll(rows[0])), nil
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

// logitsOf is the output that is most surely called logits, the last of several.
func logitsOf(entries []dump.Entry) (layer, port string) {
	least := 1
	for _, e := range entries {
		rank := module.LogitsRank(e.Layer, e.Port)
		if rank >= least && label.RoleOf(e.Port) == label.RoleOutput && e.Tensor.DType().IsFloat() {
			layer, port, least = e.Layer, e.Port, rank
		}
	}
	return layer, port
}
