package names

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goparity/goparity/internal/label"
)

// run is a run of digits in a name that counts blocks.
type run struct {
	from, to int
	number   int
}

// numbers knows which runs of digits of a side's names count blocks.
type numbers struct {
	behind map[string]string // what follows a prefix that ends with a number; several: see many
	counts map[string]string // numbers that follow a prefix; several: see many
}

// many stands for several values in the maps of numbers: a NUL is in no label.
const many = "\x00"

func numbersOf(layers []*layer) numbers {
	n := numbers{map[string]string{}, map[string]string{}}
	put := func(m map[string]string, key, value string) {
		if old, ok := m[key]; ok && old != value {
			value = many
		}
		m[key] = value
	}
	for _, l := range layers {
		for _, r := range digitsOf(l.name) {
			put(n.behind, l.name[:r.to], l.name[r.to:])
			put(n.counts, l.name[:r.from], l.name[r.from:r.to])
		}
	}
	return n
}

// of returns the numbers in a name that count blocks: a number that varies, and is a segment, or is
// followed by different things, as in L0_attn and L0_ffn, and not as in fc1.
func (n numbers) of(name string) (out []run) {
	for _, r := range digitsOf(name) {
		segment := (r.from == 0 || name[r.from-1] == '.') && (r.to == len(name) || name[r.to] == '.')
		if n.counts[name[:r.from]] == many && (segment || n.behind[name[:r.to]] == many) {
			out = append(out, r)
		}
	}
	return out
}

// digitsOf lists the runs of digits that are numbers without leading zeros.
func digitsOf(name string) (out []run) {
	for i := 0; i < len(name); i++ {
		from := i
		for i < len(name) && name[i] >= '0' && name[i] <= '9' {
			i++
		}
		if digits := name[from:i]; digits != "" && (digits == "0" || digits[0] != '0') {
			if k, err := strconv.Atoi(digits); err == nil {
				out = append(out, run{from, i, k})
			}
		}
	}
	return out
}

// pattern is a pair of names in which the numbers that both count are left open.
type pattern struct {
	golden, actual string // with * for the open numbers
	shift          shift
}

// shift is by how much the candidate's open numbers are more than the golden's.
type shift [maxNumbers]int

// open reports whether a pattern stands for several pairs.
func (p pattern) open() bool { return strings.Contains(p.golden, "*") }

// patternsOf generalises a pair of layers in two ways. With the numbers open that are equal in order;
// and, where both names have equally many, with all open, the blocks counted from another number.
func patternsOf(g, a *layer) (same, shifted pattern) {
	var golden, actual []run
	from := 0
	for _, r := range g.runs[:min(len(g.runs), maxNumbers)] {
		for j := from; j < len(a.runs); j++ {
			if r.number == a.runs[j].number {
				golden, actual = append(golden, r), append(actual, a.runs[j])
				from = j + 1
				break
			}
		}
	}
	same = pattern{golden: starred(g.name, golden), actual: starred(a.name, actual)}
	n := min(len(g.runs), len(a.runs), maxNumbers)
	if len(g.runs) != len(a.runs) && len(golden) > 0 {
		return same, same
	}
	shifted = pattern{golden: starred(g.name, g.runs[:n]), actual: starred(a.name, a.runs[:n])}
	for i := range n {
		shifted.shift[i] = a.runs[i].number - g.runs[i].number
	}
	return same, shifted
}

// starred writes * for some runs.
func starred(name string, runs []run) string {
	var b strings.Builder
	at := 0
	for _, r := range runs {
		b.WriteString(name[at:r.from] + "*")
		at = r.to
	}
	return b.String() + name[at:]
}

// take returns the name of the candidate's layer that a pattern pairs with a golden one.
func (p pattern) take(golden string) (actual string, ok bool) {
	numbers, ok := captured(p.golden, golden)
	if !ok {
		return "", false
	}
	return fill(p.actual, numbers, p.shift), true
}

// fill writes numbers in the place of the open ones, counted on by a shift.
func fill(pattern string, numbers []string, by shift) string {
	for i, digits := range numbers {
		if k, err := strconv.Atoi(digits); i < len(by) && by[i] != 0 && err == nil {
			digits = strconv.Itoa(k + by[i])
		}
		pattern = strings.Replace(pattern, "*", digits, 1)
	}
	return pattern
}

// captured returns the numbers that a pattern leaves open in a name.
func captured(pattern, name string) (numbers []string, ok bool) {
	for {
		before, behind, more := strings.Cut(pattern, "*")
		if !strings.HasPrefix(name, before) {
			return nil, false
		}
		name = name[len(before):]
		if !more {
			return numbers, name == ""
		}
		end := 0
		for end < len(name) && label.IsNumber(name[:end+1]) {
			end++
		}
		if end == 0 {
			return nil, false
		}
		numbers = append(numbers, name[:end])
		name, pattern = name[end:], behind
	}
}

// counted returns by how much the candidate's numbers of blocks are more than the golden's, as the
// smallest numbers of as many blocks tell.
func counted(golden, actual []int) int {
	if len(golden) != len(actual) || len(golden) == 0 {
		return 0
	}
	return slices.Min(actual) - slices.Min(golden)
}
