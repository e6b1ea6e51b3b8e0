package piece

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/internal/replay"
)

// judge is the judging of one run.
type judge struct {
	*Run
	ctx      context.Context
	order    []int // ports that the candidate has, in the order in which their values existed
	local    map[int]*Local
	users    map[program.ID][]int // ports whose pieces take a value, as it stands
	uses     map[program.ID][]int // operators that take a value, ascending
	anyOrder excluded             // values whose rows are in an order that nobody knows
	pieces   map[int]*program.Piece
	memo     map[replayKey][]*replayed
	looks    map[int][]*looked
	madeOf   map[int]*replay.Array // what records that were filled in are made of, by port
	choices  map[int]*replay.Array // choices of the best in the order in which the reference has them, by port
	inOrder  map[int]*replay.Array // those of choices that count as right

	scheme    *Scheme  // how products round what they take; nil: they do not
	schemes   []*judge // the same run, judged by how it rounds
	precise   string   // that in words
	excluding excluded // by stretches
}

func newJudge(ctx context.Context, r *Run) *judge {
	j := &judge{Run: r, ctx: ctx, local: map[int]*Local{}, users: map[program.ID][]int{}, uses: map[program.ID][]int{}, anyOrder: excluded{}, pieces: map[int]*program.Piece{},
		memo: map[replayKey][]*replayed{}, looks: map[int][]*looked{}, madeOf: map[int]*replay.Array{}, choices: map[int]*replay.Array{}, excluding: excluded{}}
	for i := range r.Program.Ops {
		for _, v := range r.Program.Ops[i].Operands() {
			j.uses[v] = append(j.uses[v], i)
		}
	}
	for i := range r.Records {
		if x := &r.Records[i]; !x.Source && (x.Tensor != nil || x.Misfit || x.Golden.Known) {
			j.order = append(j.order, i)
		}
	}
	return j
}

// piece returns the operators between a port and the candidate's records before it.
func (j *judge) piece(port int) *program.Piece {
	p := j.pieces[port]
	if p == nil {
		p = j.Program.Piece(port, func(i int) bool { return j.Records[i].Tensor != nil })
		j.pieces[port] = p
	}
	return p
}

// look judges a port by its piece, with some values left out as sources: each is replayed in its turn.
func (j *judge) look(port int, out excluded) *Local {
	for _, l := range j.looks[port] {
		if l.holds(out) {
			return l.Local
		}
	}
	l := &looked{Local: &Local{First: 1}, basis: newBasis()}
	j.judge(port, out, l)
	if len(j.schemes) > 0 && l.Wrong && l.Opaque == "" {
		l.Local = j.rounding(port, out)
	}
	j.looks[port] = append(j.looks[port], l)
	return l.Local
}

type looked struct {
	*Local
	*basis
}

func (j *judge) judge(port int, out excluded, l *looked) {
	r := &j.Records[port]
	piece := j.piece(port)
	if r.Misfit {
		if _, err := j.replay(port, out, plain, l.basis); !j.free(port, l.Local, err) {
			l.Error, l.RowError, l.Wrong = inf, inf, true
		}
		return
	}
	l.Sources = piece.Sources
	if n := len(piece.Origin); n > 0 {
		l.First, l.Last = piece.Origin[0], piece.Origin[n-1]
	}
	if r.Tensor == nil {
		j.byGolden(port, out, l.Local, errOther)
		return
	}
	c, err := j.compare(port, out, l)
	switch {
	case j.free(port, l.Local, err):
	case err != nil:
		j.byGolden(port, out, l.Local, err)
	case len(c.have.x) != len(c.made.x) || len(c.have.x) == 0:
	case c.exact:
		c.integers()
	default:
		c.decide()
	}
}

// free reports whether a piece need not make what the reference's did: it draws random numbers, or goes
// another way on the candidate's. Then the golden tells nothing either.
func (j *judge) free(port int, l *Local, err error) bool {
	e, ok := errors.AsType[*replay.OpaqueError](err)
	if !ok || e.Free == replay.Bound {
		return false
	}
	*l = Local{First: l.First, Last: l.Last, Sources: l.Sources, Opaque: err.Error(), Unjudged: !j.Records[port].Golden.Agrees}
	l.Drawn = e.Free == replay.Drawn || j.Program.Drawn(j.Program.Ports[port].Value) // the other way is that of the random numbers
	l.Tied = !l.Drawn
	return true
}

// errOther says why a tensor that has a golden is not replayed.
var errOther = errors.New("the candidate has it in a form that is not laid out as the reference's")

// byGolden judges a port that cannot be replayed: where all that it is made of agrees with the golden,
// it must, too, unless it is off by little more than that.
func (j *judge) byGolden(port int, out excluded, l *Local, err error) {
	g := j.Records[port].Golden
	l.Opaque = err.Error()
	l.Unjudged = !g.Known || !g.Agrees
	if len(out) > 0 || !l.Unjudged || !g.Known { // what is left out is not what the candidate had
		return
	}
	came := 0.0
	for _, s := range l.Sources {
		from := j.Records[s].Golden
		if !from.Known || !from.Agrees || from.Tied {
			return
		}
		came = math.Max(came, from.Error)
	}
	least := 1.0
	if compare.Has16Bits(j.Encoding) && !g.Measured && len(l.Sources) > 0 {
		least = LeastOf16
	}
	if g.Error > math.Max(least, jump*came) {
		l.Wrong, l.Unjudged = true, false
		l.Error, l.RowError = inf, inf
	}
}

// comparison is of one port with what its piece makes.
type comparison struct {
	*judge
	*looked
	port       int
	out        excluded
	have, made numbers
	keys       []int
	exact      bool // of whole numbers or bools
}

func (j *judge) compare(port int, out excluded, l *looked) (*comparison, error) {
	a, err := j.replay(port, out, plain, l.basis)
	if err != nil {
		return nil, err
	}
	r := &j.Records[port]
	c := &comparison{judge: j, port: port, out: out, looked: l, exact: !r.Tensor.DType().IsFloat() || !a.DType().IsFloat()}
	c.have, c.keys = r.arrange(r.Tensor)
	c.made, _ = r.arrange(a)
	return c, nil
}

func (c *comparison) decide() {
	l, f := c.Local, floor(c.Encoding)
	near := c.near()
	e := difference(near, c.have, nil)
	l.Error, l.RowError = e.whole, e.row
	limit := deviation{f, perRow * f}
	if !e.exceeds(limit) {
		c.unless()
		return
	}
	n := c.noise()
	limit = limit.max(deviation{perNoise * n.whole, perNoise * n.row})
	w := c.moves(wide)
	limit = limit.max(deviation{perWide * w.whole, perWide * w.row})
	if c.scheme != nil && c.scheme.Sized {
		limit = limit.max(byOperands(c.moves(roundedBy(c.scheme)), f))
	}
	n = n.max(w)
	l.Noise, l.RowNoise, l.Limit, l.RowLimit = n.whole, n.row, limit.whole, limit.row
	if !e.exceeds(limit) {
		c.unless()
		return
	}
	stable, err := c.stable(limit.row)
	if c.free(c.port, l, err) {
		return
	}
	if stable != nil {
		if e = difference(near, c.have, stable); !e.exceeds(limit) {
			return
		}
	}
	l.Wrong, l.Larger = true, c.larger()
	c.note(c.wrongRows(limit.row))
}

// unless lets a piece be wrong whose error is within its limit, and is not that of rounding.
func (c *comparison) unless() {
	c.Larger = c.larger()
	c.Wrong = c.Larger != 0
}

// near is what was made, as the candidate has it where that rounds to numbers of 8 bits.
func (c *comparison) near() numbers {
	if c.scheme == nil {
		return c.made
	}
	return numbers{Snapped(c.made.x, c.have.x), c.made.width}
}

// noise is how far the piece moves when every result is rounded as the run rounds.
func (c *comparison) noise() (n deviation) {
	for _, m := range roundings(c.Encoding) {
		n = n.max(c.moves(m))
	}
	return n
}

// in is what the piece makes in a mode, of what is compared.
func (c *comparison) in(m mode) (numbers, error) {
	a, err := c.replay(c.port, c.out, m, c.basis)
	if err != nil {
		return numbers{}, err
	}
	made, _ := c.Records[c.port].arrange(a)
	return made, nil
}

// moves is how far a mode moves the result of the piece.
func (c *comparison) moves(m mode) deviation {
	moved, err := c.in(m)
	if err != nil {
		return deviation{}
	}
	f := difference(moved, c.made, nil)
	if f.whole == inf || f.row == inf { // no noise: an overflow of the narrower type
		return deviation{}
	}
	return f
}

// stable returns which rows stay where they are when the sources are off by a rounding, and of equal numbers others
// are chosen; nil if all do. What a tie decides is not stable: either choice is right. The shakes show what ties
// make: a row that is off by much more is wrong all the same. The error is of a piece that cannot be replayed then:
// it goes another way.
func (c *comparison) stable(limit float64) (func(row int) bool, error) {
	unstable, err := c.byTies(limit) // by how much it moves
	if err != nil {
		return nil, err
	}
	for k := range shakes {
		moved, err := c.in(shaken(k))
		if err != nil {
			return nil, err
		}
		for i, by := range rowsApart(moved, c.made) {
			if by > limit {
				unstable[i] = math.Max(unstable[i], by)
			}
		}
	}
	if len(unstable) == 0 {
		return nil, nil
	}
	off := rowsApart(c.near(), c.have)
	return func(row int) bool {
		by, moves := unstable[row]
		return !moves || off[row] > perNoise*by
	}, nil
}

// byTies returns by how much rows move where others of equal numbers are chosen. A row in which something is
// wrong that stays has none.
func (c *comparison) byTies(limit float64) (map[int]float64, error) {
	by := map[int]float64{}
	if !c.mayOrder(c.port, c.out) {
		return by, nil
	}
	turned, err := c.in(others)
	if err != nil {
		return nil, err
	}
	rest := numbers{slices.Clone(c.have.x), c.have.width}
	for i, v := range turned.x {
		if v != c.made.x[i] {
			rest.x[i] = c.made.x[i]
		}
	}
	stays := rowsApart(rest, c.made)
	for i, moved := range rowsApart(turned, c.made) {
		if moved > limit && stays[i] <= limit {
			by[i] = moved
		}
	}
	return by, nil
}

func (c *comparison) wrongRows(limit float64) (rows []int) {
	for i, by := range rowsApart(c.made.meaning(), c.have.meaning()) {
		if !(by <= limit) {
			rows = append(rows, i)
		}
	}
	return rows
}

// note keeps which rows are wrong.
func (c *comparison) note(rows []int) {
	if c.keys != nil {
		for n, i := range rows {
			rows[n] = c.keys[i]
		}
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	if c.Records[c.port].Rows != nil {
		c.Rows = rows
	} else {
		c.lines = rows
	}
}

// integers judges whole numbers and bools: they are exact, but for rows of choices that are not
// stable: that come out otherwise where the sources are off by a rounding, or equal numbers stand in
// the other order, or that are right by the candidate's own scores, or choose the best of them in any order.
func (c *comparison) integers() {
	l, wrong := c.Local, map[int]bool{}
	for i := range c.have.rows() {
		if !slices.Equal(c.have.row(i), c.made.row(i)) {
			wrong[i] = true
		}
	}
	if len(wrong) == 0 {
		return
	}
	for k := range shakes {
		moved, err := c.in(shaken(k))
		if err != nil {
			break
		}
		maps.DeleteFunc(wrong, func(i int, _ bool) bool { return !slices.Equal(moved.row(i), c.made.row(i)) })
	}
	if len(wrong) > 0 && len(c.out) == 0 {
		l.beside = c.chosen(wrong)
	}
	if len(wrong) == 0 || c.inOrder[c.port] != nil {
		return
	}
	if len(c.out) == 0 {
		c.best(wrong)
	}
	l.Error = float64(len(wrong)) / float64(c.have.rows())
	l.RowError, l.Wrong = l.Error, true
	c.note(slices.Collect(maps.Keys(wrong)))
}

// chosen takes the rows out of wrong that are the choice which the scores make that the candidate has
// beside it, and returns the ports of these scores if there is such a row. It adds to the basis what it took.
func (c *comparison) chosen(wrong map[int]bool) (scores []int) {
	p := c.Program.Beside(c.port, func(i int) bool { return c.Records[i].Tensor != nil })
	if !slices.ContainsFunc(p.Ops, orders) {
		return nil
	}
	for _, m := range []mode{plain, reversed} {
		a, err := c.run(p, nil, m, c.basis)
		if err != nil {
			return scores
		}
		made, _ := c.Records[c.port].arrange(a)
		for i := range wrong {
			if slices.Equal(made.row(i), c.have.row(i)) {
				delete(wrong, i)
				scores = p.Sources
			}
		}
	}
	return scores
}
