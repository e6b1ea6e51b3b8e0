package continuation

import (
	"cmp"
	"slices"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/label/module"
	"github.com/goparity/goparity/internal/path"
)

// findLogits finds the output of a run that holds logits: wide enough for each token, one row for each
// token that decides another, by its name, or else the last of the run.
func findLogits(s *Side, sheet *path.Sheet, other *Side) (*dumped, error) {
	least := 1
	for _, ids := range [][]int{s.Text, s.Choices} {
		for _, id := range ids {
			least = max(least, id)
		}
	}
	width := 0 // of the other side
	if other != nil {
		if l, ok := other.logits.(*dumped); ok {
			width = l.vocabulary
		}
	}
	type candidate struct {
		*dumped
		rows, named, fits, order int
	}
	var found []candidate
	seen := map[[2]string]bool{}
	for i, e := range sheet.Run.Entries {
		key := [2]string{e.Layer, e.Port}
		if seen[key] || label.IsInput(e.Port) || !e.Tensor.DType().IsFloat() {
			continue
		}
		seen[key] = true
		l := &dumped{sheet: sheet, prompt: s.Prompt, layer: e.Layer, port: e.Port, of: e.Tensor.DType()}
		if l.vocabulary = l.width(s); l.vocabulary <= least {
			continue
		}
		c := candidate{dumped: l, named: module.LogitsRank(e.Layer, e.Port), order: i}
		for k := range len(s.Text) - s.Prompt + 1 {
			if parts, err := sheet.Rows(l.layer, l.port, 0, s.Prompt-1+k, s.Prompt+k); err == nil && len(parts) == 1 {
				c.rows++
			}
		}
		if l.vocabulary == width {
			c.fits = 1
		}
		found = append(found, c)
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		return cmp.Or(b.fits-a.fits, min(b.named, 1)-min(a.named, 1), b.rows-a.rows, b.named-a.named, b.order-a.order)
	})
	if len(found) == 0 || found[0].named == 0 && found[0].fits == 0 && found[0].order != lastOutput(sheet) {
		return nil, unjudged("%s has no logits: no output has a row for each token that is wider than the largest token id, %d: "+
			"record the output of the last layer, of all rows", s.From, least)
	}
	return found[0].dumped, nil
}

// lastOutput is the entry of the last output of the first forward pass.
func lastOutput(sheet *path.Sheet) int {
	last := -1
	for i, e := range sheet.Run.Entries {
		if e.Step == sheet.Passes[0].Step && !label.IsInput(e.Port) {
			last = i
		}
	}
	return last
}

// width is the length of a row; 0 where no row is known.
func (l *dumped) width(s *Side) int {
	for at := s.Prompt - 1; at < len(s.Text); at++ {
		if parts, err := l.sheet.Rows(l.layer, l.port, 0, at, at+1); err == nil && len(parts) == 1 {
			return parts[0].Len()
		}
	}
	return 0
}
