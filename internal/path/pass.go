package path

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/tensor"
)

// Row is the token that a row belongs to: its sequence in token_ids, and its place there.
type Row struct{ Sequence, Position int }

// Compare orders rows by sequence, then by position.
func (r Row) Compare(other Row) int {
	return cmp.Or(cmp.Compare(r.Sequence, other.Sequence), cmp.Compare(r.Position, other.Position))
}

// Pass is a forward pass.
type Pass struct {
	Step  string
	Items []dump.PassItem // in the order of the rows
	Rows  []Row           // of all items, without padding

	grid  [][]bool // true for the rows of a padded tensor that are tokens; nil if there is no padding
	cells []int    // where Rows are in the grid, line after line

	recorded, laid map[nameKey]*tensor.Tensor // ports as they were recorded, and laid out
	entries        []dump.Entry               // those that were laid out, in the order in which they ran
}

// Whole reports whether the pass fed a single sequence from its first token on: then each row of it
// stands beside all that it depends on.
func (p *Pass) Whole() bool { return len(p.Items) == 1 && p.Items[0].From == 0 }

// Index is the index of the item of a sequence; −1 if the pass did not feed it.
func (p *Pass) Index(sequence int) int {
	return slices.IndexFunc(p.Items, func(i dump.PassItem) bool { return i.Sequence == sequence })
}

// count counts the rows of a pass, and returns an error if the mask of its padded tensors is of other ones.
func (p *Pass) count() error {
	for _, item := range p.Items {
		for at := item.From; at < item.To; at++ {
			p.Rows = append(p.Rows, Row{item.Sequence, at})
		}
	}
	if p.grid == nil {
		return nil
	}
	var fed []int // by line with tokens; the others are all padding
	for line, row := range p.grid {
		before := len(p.cells)
		for i, is := range row {
			if is {
				p.cells = append(p.cells, line*len(row)+i)
			}
		}
		if n := len(p.cells) - before; n > 0 {
			fed = append(fed, n)
		}
	}
	if len(fed) != len(p.Items) {
		return fmt.Errorf("the padding mask of step %s has %d sequences, the forward pass feeds %d: "+
			"want a row for each item of passes[%s]", p.Step, len(fed), len(p.Items), p.Step)
	}
	for i, n := range p.Lengths() {
		if fed[i] != n {
			return fmt.Errorf("row %d of the padding mask of step %s has %d tokens, passes[%s][%d] feeds %d (%s): "+
				"want 1 for each token that was fed, and 0 for padding", i, p.Step, fed[i], p.Step, i, n, p.Items[i])
		}
	}
	return nil
}

// offset is the first row of an item.
func (p *Pass) offset(item int) (at int) {
	for _, i := range p.Items[:item] {
		at += i.To - i.From
	}
	return at
}

// Size returns the lengths of the first two axes of tensors that have a row for each sequence,
// padded to one length; 0 if the sequences have several lengths and nothing says how they are
// padded.
func (p *Pass) Size() (sequences, tokens int) {
	if p.grid != nil {
		return len(p.grid), len(p.grid[0])
	}
	lengths := p.Lengths()
	if slices.Min(lengths) < slices.Max(lengths) {
		return 0, 0
	}
	return len(lengths), lengths[0]
}

// padded reports whether some rows of the pass are padding.
func (p *Pass) padded() bool { return p.grid != nil }

// Place is where the i-th token of an item lies in tensors of [Pass.Size].
func (p *Pass) Place(item, i int) (line, row int) {
	if p.grid == nil {
		return item, i
	}
	at, width := p.cells[p.offset(item)+i], len(p.grid[0])
	return at / width, at % width
}

// Lengths are the numbers of tokens of the items.
func (p *Pass) Lengths() (n []int) {
	for _, item := range p.Items {
		n = append(n, item.To-item.From)
	}
	return n
}

// Passes lists the forward passes of a run, and the tokens of its sequences.
func Passes(r *dump.Run) (list []*Pass, tokens [][]int, err error) {
	switch tokens = r.Info.Unpadded(); {
	case r.Info.Passes != nil:
		tokens = r.Info.Tokens()
		list, err = listed(r)
	case len(whole(tokens)) == 0:
		err = fmt.Errorf("%s has no token_ids in run.json: they tell which row is which token", r.Path)
	case r.Info.Generation != nil && len(r.Steps()) > 1 && len(tokens) == 1:
		list, err = generated(r, len(tokens[0]))
	default:
		list, tokens = plain(r, decisive(r, tokens))
	}
	for _, p := range list {
		err = cmp.Or(err, p.count())
	}
	return list, tokens, err
}

// whole is what a run feeds in one pass, where it does not say more: all its sequences.
func whole(tokens [][]int) (items []dump.PassItem) {
	for i, ids := range tokens {
		if len(ids) > 0 {
			items = append(items, dump.PassItem{Sequence: i, To: len(ids)})
		}
	}
	return items
}

// listed are the forward passes that run.json lists.
func listed(r *dump.Run) (list []*Pass, err error) {
	steps := r.Steps()
	for k, items := range r.Info.Passes {
		step := strconv.Itoa(k)
		if !slices.Contains(steps, step) {
			return nil, fmt.Errorf("passes[%d] has no tensors in %s: want a step %q, one for each forward pass",
				k, r.Path, step)
		}
		mask := r.Info.PadMasks[step]
		if k == 0 {
			mask = r.Info.PadMask
		}
		list = append(list, &Pass{Step: step, Items: items, grid: bools(mask)})
	}
	return list, nil
}

// plain lists the forward passes of a run that does not say them: all sequences in the first step, and one
// more token of each in every step after it, where their inputs tell which.
func plain(r *dump.Run, tokens [][]int) ([]*Pass, [][]int) {
	steps, items, decoded := r.Steps(), whole(tokens), r.Decoded()
	list := []*Pass{{Step: steps[0], Items: items}}
	if mask := r.RealTokens(); slices.ContainsFunc(mask, func(row []bool) bool { return slices.Contains(row, false) }) {
		list[0].grid = mask
	}
	if len(decoded) != len(items) {
		return list, tokens
	}
	tokens = slices.Clone(tokens)
	for k, step := range steps[1:] {
		p := &Pass{Step: step}
		for i, item := range items {
			n := len(tokens[item.Sequence])
			p.Items = append(p.Items, dump.PassItem{Sequence: item.Sequence, From: n, To: n + 1})
			tokens[item.Sequence] = append(slices.Clip(tokens[item.Sequence]), decoded[i][k])
		}
		list = append(list, p)
	}
	return list, tokens
}

// decisive leaves out the last token of a generation where no tensor has a row for it: it decides no
// other.
func decisive(r *dump.Run, tokens [][]int) [][]int {
	if r.Info.Generation == nil || len(tokens) != 1 || len(tokens[0]) < 2 {
		return tokens
	}
	all, votes := len(tokens[0]), 0
	for _, e := range r.Entries {
		lead := e.Tensor.Shape()
		lead = lead[:min(2, max(len(lead)-1, 0))]
		if slices.Contains(lead, all) {
			votes--
		} else if slices.Contains(lead, all-1) {
			votes++
		}
	}
	if votes <= 0 {
		return tokens
	}
	return [][]int{tokens[0][:all-1]}
}

// generated lists the forward passes of a run that was forced along a text of so many tokens: the prompt in the step
// that comes first, and then a token in each step. Steps that are called by their numbers are where these
// say, so that one that is missing moves no other.
func generated(r *dump.Run, tokens int) (list []*Pass, err error) {
	from := r.Info.Generation.From
	for k, step := range r.Steps() {
		if n, err := strconv.Atoi(step); err == nil {
			k = n
		}
		item := dump.PassItem{From: from + k - 1, To: from + k}
		if k == 0 {
			item.From = 0
		}
		if k < 0 || item.To > tokens {
			return nil, fmt.Errorf("step %s of %s feeds token %d, token_ids of run.json has %d: want a step for the prompt, "+
				"and one for each token of the continuation", step, r.Path, item.To-1, tokens)
		}
		list = append(list, &Pass{Step: step, Items: []dump.PassItem{item}})
	}
	return list, nil
}

func bools(mask [][]int) (out [][]bool) {
	for _, row := range mask {
		is := make([]bool, len(row))
		for i, v := range row {
			is[i] = v != 0
		}
		out = append(out, is)
	}
	return out
}
