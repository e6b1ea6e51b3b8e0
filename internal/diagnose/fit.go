package diagnose

import "math"

// fitted is a fault with one number of its own, between low and high: the one at which the target is nearest to the candidate's. real gives what
// the number stands for. work is what that costs, in multiplications; a fault that costs too much is not tried.
func (g *graph) fitted(v *value, id, text string, low, high, work float64, real func(x float64) float64, of func(x float64) func(*evaluation, []int) []float64) fault {
	const share, rows = 8, 6
	at, number := math.NaN(), math.NaN()
	return fault{id: id, text: text, rank: 2, params: 1, number: &number, eval: func(e *evaluation, want []int) []float64 {
		if work > workLimit/share || !e.candidate {
			return nil
		}
		if math.IsNaN(at) {
			all, _ := g.sample()
			t := g.target
			actual := read(g.s.Target.Actual, t.width, all)
			some := worst(all, read(t.golden, t.width, all), actual, t.width)
			if step := len(some) / rows; step > 1 {
				for i := range rows {
					some[i] = some[i*step]
				}
				some = some[:rows]
			}
			actual = read(g.s.Target.Actual, t.width, some)
			at = minimum(low, high, func(x float64) float64 { return relative(g.faulty(v, &fault{eval: of(x)}).get(t, some), actual) })
			number = real(at)
		}
		return of(at)(e, want)
	}}
}

// minimum finds where f is smallest between low and high: a grid, then golden sections.
func minimum(low, high float64, f func(float64) float64) float64 {
	const grid, sections = 48, 28
	best, at := math.Inf(1), low
	step := (high - low) / grid
	for i := range grid + 1 {
		x := low + float64(i)*step
		if m := f(x); m < best {
			best, at = m, x
		}
	}
	a, b := at-step, at+step
	const phi = 0.6180339887498949
	c, d := b-phi*(b-a), a+phi*(b-a)
	fc, fd := f(c), f(d)
	for range sections {
		if fc < fd {
			b, d, fd = d, c, fc
			c = b - phi*(b-a)
			fc = f(c)
		} else {
			a, c, fc = c, d, fd
			d = a + phi*(b-a)
			fd = f(d)
		}
	}
	return (a + b) / 2
}
