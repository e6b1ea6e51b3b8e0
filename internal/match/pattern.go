package match

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// run is a run of digits in a label that counts blocks.
type run struct {
	from, to int
	number   int
}

// numbers knows which runs of digits of a side's labels count blocks: by the prefixes of labels, what follows one that
// ends with a number, and the number that follows any other. Several are [many].
type numbers map[string]string

// many stands for several texts: a NUL is in no label.
const many = "\x00"

func numbersOf(labels []string) numbers {
	n := numbers{}
	put := func(prefix, text string) {
		if old, ok := n[prefix]; ok && old != text {
			text = many
		}
		n[prefix] = text
	}
	for _, l := range labels {
		for _, r := range digitsOf(l) {
			put(l[:r.to], l[r.to:])
			put(l[:r.from], l[r.from:r.to])
		}
	}
	return n
}

// of returns the numbers in a label that count blocks: a number that varies, and is a segment, or is
// followed by different things, as in L0_attn and L0_ffn, and not as in fc1.
func (n numbers) of(name string) []run {
	return keep(digitsOf(name), func(r run) bool {
		segment := (r.from == 0 || name[r.from-1] == '.') && (r.to == len(name) || name[r.to] == '.')
		return n[name[:r.from]] == many && (segment || n[name[:r.to]] == many)
	})
}

var digits = regexp.MustCompile(`\d+`)

// digitsOf lists the runs of digits that are numbers without leading zeros.
func digitsOf(name string) (out []run) {
	for _, at := range digits.FindAllStringIndex(name, -1) {
		text := name[at[0]:at[1]]
		if k, err := strconv.Atoi(text); err == nil && strconv.Itoa(k) == text {
			out = append(out, run{at[0], at[1], k})
		}
	}
	return out
}

// pattern is a pair of labels in which the numbers that both count are left open.
type pattern struct {
	golden, actual string // with * for the open numbers
	shift          shift
}

// shift is by how much the candidate's open numbers are more than the golden's.
type shift [maxNumbers]int

// patternOf generalises a pair of layers: where both labels have equally many numbers, all are open, the
// blocks counted from another number; else those that are equal in order, or the first ones.
func patternOf(g, a *node) (t pattern) {
	golden, actual := g.blocks[:min(len(g.blocks), maxNumbers)], a.blocks[:min(len(a.blocks), maxNumbers)]
	if n := min(len(golden), len(actual)); len(g.blocks) != len(a.blocks) {
		if golden, actual = inBoth(golden, a.blocks); len(golden) == 0 {
			golden, actual = g.blocks[:n], a.blocks[:n]
		}
	}
	for i := range golden {
		t.shift[i] = actual[i].number - golden[i].number
	}
	t.golden, t.actual = withStars(g.label, golden), withStars(a.label, actual)
	return t
}

// inBoth returns the numbers of a list that another one has in this order, too, in both.
func inBoth(list, other []run) (golden, actual []run) {
	for _, r := range list {
		if i := slices.IndexFunc(other, func(o run) bool { return o.number == r.number }); i >= 0 {
			golden, actual, other = append(golden, r), append(actual, other[i]), other[i+1:]
		}
	}
	return golden, actual
}

// withStars writes * for some runs.
func withStars(name string, runs []run) string {
	var b strings.Builder
	at := 0
	for _, r := range runs {
		b.WriteString(name[at:r.from] + "*")
		at = r.to
	}
	return b.String() + name[at:]
}

// fill writes numbers in the place of the open ones, counted on by a shift.
func fill(pattern string, numbers []string, by shift) string {
	numbers = slices.Clone(numbers)
	for i, text := range numbers[:min(len(numbers), len(by))] {
		if k, err := strconv.Atoi(text); by[i] != 0 && err == nil {
			numbers[i] = strconv.Itoa(k + by[i])
		}
	}
	return substitute(pattern, numbers)
}

// openNumbers makes a regular expression of a pattern that captures the numbers that it leaves open.
func openNumbers(pattern string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `(\d+)`) + "$")
}

// finding is what patterns pair in all blocks.
type finding struct {
	golden, actual []string // with * for the open numbers; one of the two has one
	shift          shift
	by             evidence
	groups         []*joined
}

// generalise makes patterns of pairs, takes those of which most pairs are, and pairs what they stand
// for.
func (p *search) generalise(pairs []edge, by evidence) {
	count := map[pattern]int{}
	var all []pattern
	for _, e := range pairs {
		t := patternOf(e.golden, e.actual)
		if count[t]++; count[t] == 1 {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b pattern) int { return count[b] - count[a] })
	for _, t := range all {
		p.apply(finding{golden: []string{t.golden}, actual: []string{t.actual}, shift: t.shift, by: by})
	}
}

// apply pairs all free layers for which patterns stand.
func (p *search) apply(f finding) {
	first, blocks := openNumbers(f.golden[0]), strings.Contains(f.golden[0], "*")
	layers := p.golden.layers
	if n := p.golden.named[f.golden[0]]; n != nil {
		layers = []*node{n}
	}
	for _, n := range layers {
		numbers := first.FindStringSubmatch(n.label)
		if numbers == nil {
			continue
		}
		j := &joined{golden: p.golden.filled(f.golden, numbers[1:], shift{}),
			actual: p.actual.filled(f.actual, numbers[1:], f.shift)}
		if slices.ContainsFunc(j.nodes(), func(n *node) bool { return n == nil || !n.free() || n.out == nil }) {
			continue
		}
		f.groups = append(f.groups, j)
	}
	if len(f.groups) == 0 {
		return
	}
	for _, j := range f.groups {
		for _, n := range j.nodes() {
			n.fused = j.fused()
		}
		if !j.fused() {
			j.golden[0].pair, j.actual[0].pair = j.actual[0], j.golden[0]
		}
	}
	p.found = append(p.found, f)
	if f.by == byValue && blocks && !p.shiftKnown {
		p.shift, p.shiftKnown = f.shift[0], true
	}
}

// filled lists the layers for which patterns stand where these are the open numbers, nil for one that
// is not there.
func (s *side) filled(patterns, numbers []string, by shift) []*node {
	return collect(patterns, func(pattern string) *node { return s.named[fill(pattern, numbers, by)] })
}

// words are what a layer's name says: the meanings of the words of its part after the number of the
// block.
type words []string

// meanings are words of the field that mean the same.
var meanings = func() map[string]string {
	of := map[string]string{}
	for _, list := range []string{
		"norm ln layernorm rmsnorm lnorm",
		"attn attention selfattn selfattention self sa mha mixer mix att",
		"mlp ffn ff feedforward feed mlps intermediate",
		"out o oproj wo proj dense cproj outproj",
		"up fc1 cfc expand wi fc w3 lin1 linear1",
		"down fc2 contract w2 lin2 linear2",
		"gate w1",
		"q query queries wq",
		"k key keys wk",
		"v value values wv",
		"embed wte tok token tokens embedding embeddings emb vocab lookup",
		"head logits unembed classifier lm lmhead vocabulary",
	} {
		kind, _, _ := strings.Cut(list, " ")
		for word := range strings.FieldsSeq(list) {
			of[word] = kind
		}
	}
	return of
}()

// wordsOf reads a name.
func wordsOf(name string, runs []run) words {
	tail := name
	if len(runs) > 0 {
		tail = strings.TrimLeft(name[runs[0].to:], "._-/")
	}
	var w words
	for _, word := range split(tail) {
		if kind := cmp.Or(meanings[word], word); !slices.Contains(w, kind) {
			w = append(w, kind)
		}
	}
	return w
}

var camel = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)

// split cuts a name into words: at dots, underscores and dashes, and before capitals.
func split(name string) []string {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.FieldsFunc(strings.ToLower(camel.ReplaceAllString(name, "$1 $2")), between)
}

// affinity is the share of what two names say that they have in common, 0 to 1.
func (w words) affinity(o words) float64 {
	if len(w)+len(o) == 0 {
		return 1 // both are a block
	}
	common := len(keep(w, func(k string) bool { return slices.Contains(o, k) }))
	return float64(common) / float64(len(w)+len(o)-common)
}
