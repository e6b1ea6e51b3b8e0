package piece

import "github.com/goparity/goparity/internal/replay"

// Scheme is a way in which engines round what products and tables take: to narrower floats, or to whole
// numbers of 8 bits.
type Scheme struct {
	Text  string    // in words, one of a kind
	Sized bool      // only the size of what it makes is known: kernels round in other ways, too
	Also  []*Scheme // what single pieces of such a run have in its place

	product, table func(*replay.Array, replay.Operand) *replay.Array // nil for what stays
}

// Operands rounds what an operator takes.
func (s *Scheme) Operands(a *replay.Array, o replay.Operand) *replay.Array {
	round := s.product
	if o.Table {
		round = s.table
	}
	if round == nil {
		return a
	}
	return round(a, o)
}

// and returns a scheme for products with another one for tables.
func (s *Scheme) and(table *Scheme) *Scheme {
	both := *s
	both.Text, both.table, both.Also = s.Text+", and "+table.Text, table.table, nil
	for _, a := range s.Also {
		both.Also = append(both.Also, a.and(table))
	}
	return &both
}

// Products are those that engines have, the exact ones first. A run that has numbers of 8 bits in
// its records may round to steps that were fixed before: its ranges are not those of its numbers, and
// only about as large.
func Products(fixed bool) (all []*Scheme) {
	for _, f := range narrow {
		all = append(all, &Scheme{Text: "products round their operands to " + f.text, product: f.operand})
	}
	sized := *all[len(all)-1]
	sized.Sized = true
	steps := &Scheme{Text: "products take 8 bits, of steps that were fixed before", Sized: true, product: activationGrids[0].operand}
	for _, acts := range activationGrids {
		for _, weights := range weightGrids {
			if acts == nil && weights == nil {
				continue
			}
			s := eightBits(acts, weights)
			switch {
			case acts != nil && weights != nil: // what was looked up in 8 bits is not rounded again; convolutions have one step for all
				s.Also = []*Scheme{eightBits(nil, weights), eightBits(acts, weights.whole())}
			case fixed:
				s.Also = []*Scheme{steps}
			}
			all = append(all, s)
		}
	}
	if all = append(all, &sized); fixed {
		all = append(all, steps)
	}
	return all
}

// eightBits is the scheme of products with weights that has 8 bits for what they take, for the weights, or
// both; nil for neither.
func eightBits(acts, weights *grid) *Scheme {
	s := &Scheme{Text: "products with weights take " + acts.String() + " times " + weights.String()}
	s.product = func(a *replay.Array, o replay.Operand) *replay.Array {
		switch {
		case !o.Weighted:
			return a
		case o.Weight:
			return weights.operand(a, o)
		}
		return acts.operand(a, o)
	}
	return s
}

// Tables are those of embeddings.
func Tables() (all []*Scheme) {
	for _, g := range weightGrids {
		if g != nil {
			all = append(all, &Scheme{Text: "embeddings are " + g.String(), table: g.operand})
		}
	}
	return all
}
